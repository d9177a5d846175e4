/* SPDX-License-Identifier: MIT */
/* One call of a gRPC server at a UNIX socket, such as the kubelet. */
#ifndef KUBERNETES_GRPC_CLIENT_H
#define KUBERNETES_GRPC_CLIENT_H

#include <protobuf-c/protobuf-c.h>

#include "fleet/kubernetes/http/http.h"

/* Called once, later. @error: NULL: done; else G_IO_ERROR with what the server said. */
typedef void (*GrpcDoneFunc)(const GError *error, void *data);

/* @path: "/package.Service/Method". The answer's message is not looked at. */
HttpCall *grpc_client_call(Http *http, const char *socket, const char *path,
                           const ProtobufCMessage *message, guint seconds, GrpcDoneFunc func,
                           void *data);

#endif
