/* SPDX-License-Identifier: MIT */
/* gRPC on a UNIX socket, in the thread's default main context. */
#ifndef KUBERNETES_GRPC_SERVER_H
#define KUBERNETES_GRPC_SERVER_H

#include "fleet/kubernetes/grpc/session.h"

/* Clients of one socket at a time; more wait to be accepted. */
#define GRPC_CLIENTS_MAX 32

typedef struct GrpcServer GrpcServer;

/*
 * Listens at @path, for root alone, in place of whatever socket is there. @service must outlive the
 * server. NULL with G_FILE_ERROR.
 */
GrpcServer *grpc_server_new(const char *path, const GrpcService *service, GError **error);

/* The socket at its path is still this server's. */
gboolean grpc_server_is_there(const GrpcServer *server);

/*
 * Closes all connections, and removes the socket unless another server has taken its place. Not
 * from within a method's function.
 */
void grpc_server_free(GrpcServer *server);

#endif
