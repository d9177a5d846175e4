// SPDX-License-Identifier: MIT

// What vgpu-kubelet writes to the API, and the files of its package, read by Kubernetes' own types; and the policy of
// rbac.yaml, compiled and evaluated by the API server's own code. Speaks TAP.
//
//	upstream FOLDER-OF-EXAMPLES RESOURCE-SLICE.json...
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	celtypes "cel.dev/cel-go/cel"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

var count, failed int

func point(good bool, what string, details ...any) {
	count++
	if good {
		fmt.Printf("ok %d - %s\n", count, what)
		return
	}
	failed++
	fmt.Printf("not ok %d - %s\n", count, what)
	for _, detail := range details {
		fmt.Printf("# %s\n", strings.ReplaceAll(fmt.Sprint(detail), "\n", "\n# "))
	}
}

// kindOf returns an empty object of upstream's type for a document's kind.
func kindOf(document []byte) (any, string) {
	var head meta.TypeMeta
	if err := yaml.Unmarshal(document, &head); err != nil {
		return nil, err.Error()
	}
	name := head.APIVersion + " " + head.Kind
	known := map[string]any{
		"v1 Pod":                                                           &core.Pod{},
		"v1 ServiceAccount":                                                &core.ServiceAccount{},
		"resource.k8s.io/v1 DeviceClass":                                   &resource.DeviceClass{},
		"resource.k8s.io/v1 ResourceClaimTemplate":                         &resource.ResourceClaimTemplate{},
		"resource.k8s.io/v1 ResourceSlice":                                 &resource.ResourceSlice{},
		"rbac.authorization.k8s.io/v1 ClusterRole":                         &rbac.ClusterRole{},
		"rbac.authorization.k8s.io/v1 ClusterRoleBinding":                  &rbac.ClusterRoleBinding{},
		"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy":        &admissionregistration.ValidatingAdmissionPolicy{},
		"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": &admissionregistration.ValidatingAdmissionPolicyBinding{},
	}
	return known[name], name
}

// read decodes all documents of a file: no field may be unknown or double.
func read(path string) []any {
	text, err := os.ReadFile(path)
	if err != nil {
		point(false, path, err)
		return nil
	}
	var all []any
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		object, name := kindOf(document)
		if object == nil {
			point(false, filepath.Base(path)+": "+name, "it is no kind that is expected here")
			continue
		}
		err := yaml.UnmarshalStrict(document, object)
		point(err == nil, filepath.Base(path)+": "+name+" has no field that upstream does not know", err)
		all = append(all, object)
	}
	return all
}

// survives tells whether upstream would write all of a slice's spec as we have written it.
func survives(path string, slice *resource.ResourceSlice) {
	var ours, theirs map[string]any
	text, _ := os.ReadFile(path)
	written, err := json.Marshal(slice)
	if err == nil {
		err = json.Unmarshal(written, &theirs)
	}
	if err == nil {
		err = json.Unmarshal(text, &ours)
	}
	point(err == nil && reflect.DeepEqual(ours["spec"], theirs["spec"]), filepath.Base(path)+": the spec is the same when upstream writes it",
		err, string(written))
}

// An expression of a policy, or one of its variables.
type expression struct {
	name, text string
	kind       *celtypes.Type
}

func (e expression) GetExpression() string         { return e.text }
func (e expression) ReturnTypes() []*celtypes.Type { return []*celtypes.Type{e.kind} }
func (e expression) GetName() string               { return e.name }

// A policy that is compiled as the API server's plugin does it.
type policy struct {
	matches, validations, messages cel.ConditionEvaluator
	fixed                          []string
}

func compile(of *admissionregistration.ValidatingAdmissionPolicy) (*policy, error) {
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return nil, err
	}
	declared := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	var variables []cel.NamedExpressionAccessor
	for _, variable := range of.Spec.Variables {
		variables = append(variables, expression{variable.Name, variable.Expression, celtypes.AnyType})
	}
	compiler.CompileAndStoreVariables(variables, declared, environment.NewExpressions)
	var matches, validations, messages []cel.ExpressionAccessor
	made := &policy{}
	for _, condition := range of.Spec.MatchConditions {
		matches = append(matches, expression{condition.Name, condition.Expression, celtypes.BoolType})
	}
	for _, validation := range of.Spec.Validations {
		validations = append(validations, expression{"", validation.Expression, celtypes.BoolType})
		made.fixed = append(made.fixed, validation.Message)
		text := validation.MessageExpression
		if text == "" {
			text = `""`
		}
		messages = append(messages, expression{"", text, celtypes.StringType})
	}
	made.matches = compiler.CompileCondition(matches, declared, environment.NewExpressions)
	made.validations = compiler.CompileCondition(validations, declared, environment.NewExpressions)
	made.messages = compiler.CompileCondition(messages, cel.OptionalVariableDeclarations{}, environment.NewExpressions)
	for _, part := range []cel.ConditionEvaluator{made.matches, made.validations, made.messages} {
		for _, problem := range part.CompilationErrors() {
			err = problem
		}
	}
	return made, err
}

// A request for a ResourceSlice. user: who sends it; tokenNode: the Node that its token is bound to.
type request struct {
	operation       admission.Operation
	user, tokenNode string
	node, driver    string
}

const us = "system:serviceaccount:kube-system:vgpu-kubelet"

// asks returns what the policy says against a request: "" is nothing.
func (p *policy) asks(of request) string {
	slice := &resource.ResourceSlice{TypeMeta: meta.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSlice"},
		Spec: resource.ResourceSliceSpec{Driver: of.driver}}
	if of.node != "" {
		slice.Spec.NodeName = &of.node
	}
	who := &user.DefaultInfo{Name: of.user, Extra: map[string][]string{}}
	if of.tokenNode != "" {
		who.Extra["authentication.kubernetes.io/node-name"] = []string{of.tokenNode}
	}
	var object, old runtime.Object = slice, nil
	if of.operation == admission.Delete {
		object, old = nil, slice
	} else if of.operation == admission.Update {
		old = slice
	}
	kind := schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceSlice"}
	place := schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}
	attributes := admission.NewAttributesRecord(object, old, kind, "", "slice", place, "", of.operation, nil, false, who)
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: object, VersionedOldObject: old}
	asked := cel.CreateAdmissionRequest(attributes, meta.GroupVersionResource(place), meta.GroupVersionKind(kind))
	bound := cel.OptionalVariableBindings{Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer()}
	evaluate := func(what cel.ConditionEvaluator, bound cel.OptionalVariableBindings) []cel.EvaluationResult {
		results, _, err := what.ForInput(context.Background(), versioned, asked, bound, nil, apiservercel.RuntimeCELCostBudget)
		if err != nil {
			return []cel.EvaluationResult{{Error: err}}
		}
		return results
	}
	for _, match := range evaluate(p.matches, bound) {
		if match.Error != nil {
			return match.Error.Error()
		}
		if match.EvalResult.Value() != true {
			return ""
		}
	}
	for i, result := range evaluate(p.validations, bound) {
		if result.Error != nil {
			return result.Error.Error()
		}
		if result.EvalResult.Value() == true {
			continue
		}
		if p.fixed[i] != "" {
			return p.fixed[i]
		}
		return fmt.Sprint(evaluate(p.messages, cel.OptionalVariableBindings{})[i].EvalResult.Value())
	}
	return ""
}

func tryPolicy(of *admissionregistration.ValidatingAdmissionPolicy) {
	made, err := compile(of)
	point(err == nil, "the policy compiles", err)
	if err != nil {
		return
	}
	ours := "gpu.mdev-vgpu.org"
	for _, one := range []struct {
		what   string
		of     request
		answer string
	}{
		{"a node's token writes the node's slice", request{admission.Create, us, "node1", "node1", ours}, ""},
		{"and changes it", request{admission.Update, us, "node1", "node1", ours}, ""},
		{"and removes it", request{admission.Delete, us, "node1", "node1", ours}, ""},
		{"not another node's", request{admission.Create, us, "node1", "node2", ours},
			"the token of vgpu-kubelet is for the node node1, and not for node2"},
		{"nor changes that", request{admission.Update, us, "node1", "node2", ours},
			"the token of vgpu-kubelet is for the node node1, and not for node2"},
		{"nor removes it", request{admission.Delete, us, "node1", "node2", ours},
			"the token of vgpu-kubelet is for the node node1, and not for node2"},
		{"nor writes a slice of no node", request{admission.Create, us, "node1", "", ours},
			"the token of vgpu-kubelet is for the node node1, and not for "},
		{"nor one of another driver", request{admission.Create, us, "node1", "node1", "gpu.example.com"},
			"vgpu-kubelet writes ResourceSlices of gpu.mdev-vgpu.org only"},
		{"a token that is bound to no node writes nothing", request{admission.Create, us, "", "node1", ours},
			"the token of vgpu-kubelet is not bound to a node (kubectl create token --bound-object-kind=Node)"},
		{"the policy is not about others", request{admission.Create, "system:node:node2", "", "node1", "gpu.example.com"}, ""},
	} {
		said := made.asks(one.of)
		point(said == one.answer, one.what, said)
	}
}

func main() {
	examples, _ := filepath.Glob(filepath.Join(os.Args[1], "*.yaml"))
	for _, path := range append(examples, os.Args[2:]...) {
		for _, object := range read(path) {
			switch object := object.(type) {
			case *admissionregistration.ValidatingAdmissionPolicy:
				tryPolicy(object)
			case *resource.ResourceSlice:
				survives(path, object)
			}
		}
	}
	point(len(examples) > 0 && len(os.Args) > 2, "there were examples and slices")
	fmt.Printf("1..%d\n", count)
	if failed > 0 {
		os.Exit(1)
	}
}
