/* SPDX-License-Identifier: MIT */
/** Form fields. Each has a label, and says below itself what is wrong or what it is for. */

import { FormGroup, FormHelperText } from "@patternfly/react-core/dist/esm/components/Form";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/esm/components/FormSelect";
import { HelperText, HelperTextItem } from "@patternfly/react-core/dist/esm/components/HelperText";
import { TextInput } from "@patternfly/react-core/dist/esm/components/TextInput";

import { parseBytes } from "../lib/units";

interface FieldProps {
    id: string;
    label: string;
    value: string;
    onChange: (value: string) => void;
    help?: string;
    required?: boolean;
}

function Help({ id, text, wrong }: { id: string; text: string | undefined; wrong?: boolean }) {
    if (!text)
        return null;
    return (
        <FormHelperText>
            <HelperText id={`${id}-help`}>
                <HelperTextItem variant={wrong ? "error" : "default"}>{text}</HelperTextItem>
            </HelperText>
        </FormHelperText>
    );
}

export function TextField({ id, label, value, onChange, help, required, wrong }: FieldProps & { wrong?: string | false }) {
    return (
        <FormGroup label={label} fieldId={id} isRequired={required ?? false}>
            <TextInput id={id} value={value} onChange={(_event, text) => onChange(text)} isRequired={required ?? false}
                       validated={wrong ? "error" : "default"} aria-describedby={`${id}-help`} />
            <Help id={id} text={wrong || help} wrong={!!wrong} />
        </FormGroup>
    );
}

export function isSize(text: string): boolean {
    return !text || parseBytes(text) !== null;
}

export function isNumber(text: string): boolean {
    return /^\d*$/.test(text);
}

/** The size in bytes; undefined: the field is empty. */
export function sizeOf(text: string): number | undefined {
    return text ? parseBytes(text) ?? undefined : undefined;
}

/** undefined: the field is empty. */
export function numberOf(text: string): number | undefined {
    return text ? Number(text) : undefined;
}

export function SizeField(props: FieldProps) {
    return <TextField {...props} wrong={!isSize(props.value) && "Write a size, such as 2G or 512M."} />;
}

export function NumberField(props: FieldProps) {
    return <TextField {...props} wrong={!isNumber(props.value) && "Write a whole number."} />;
}

/** @param options - pairs of value and label */
export function SelectField({ id, label, value, onChange, help, options }:
    FieldProps & { options: readonly (readonly [string, string])[] }) {
    return (
        <FormGroup label={label} fieldId={id}>
            <FormSelect id={id} value={value} onChange={(_event, chosen) => onChange(chosen)}
                        aria-describedby={`${id}-help`}>
                {options.map(([key, text]) => <FormSelectOption key={key} value={key} label={text} />)}
            </FormSelect>
            <Help id={id} text={help} />
        </FormGroup>
    );
}
