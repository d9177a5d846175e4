/* SPDX-License-Identifier: MIT */
/*
 * Calls of methods, from the moment that the caller is known to have the right: what they change
 * goes into the audit (audit.h), and they are answered, here and nowhere else.
 */
#ifndef VGPUD_HOST_CALL_H
#define VGPUD_HOST_CALL_H

#include "host-agent/daemon/host/authority.h"
#include "host-agent/daemon/host/host.h"

/* @invocation is about to be executed for @caller. Called for every method. */
void call_begin(GDBusMethodInvocation *invocation, const Caller *caller);

/*
 * An old name of a method was called: @method is executed in its place, with @parameters, which are
 * taken if floating; NULL: they are the same. @form makes of its answer, one value, a new one of
 * the old method's type, floating or not; NULL: it is the same.
 */
typedef GVariant *CallForm(GVariant *value);
void call_translate(GDBusMethodInvocation *invocation, const char *method, GVariant *parameters,
                    CallForm *form);

/* What the method is called with, owned by @invocation. */
GVariant *call_parameters(GDBusMethodInvocation *invocation);

/* The GPU whose method is called; NULL: it has just gone, and the call is refused. */
const Gpu *call_gpu(GDBusMethodInvocation *invocation, const Host *host);

/* The method is about to make that slice, which is in the audit if it exists when it is answered.
 */
void call_creates(GDBusMethodInvocation *invocation, const char *uuid);

/* @answer: of the method's type, a tuple, floating or not; NULL: it returns nothing. */
void call_answer(GDBusMethodInvocation *invocation, GVariant *answer);

/* For a method that returns one value, floating or not. */
void call_answer_value(GDBusMethodInvocation *invocation, GVariant *value);

/* @code: of AGENT_ERROR. */
void call_refuse(GDBusMethodInvocation *invocation, int code, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

void call_fail(GDBusMethodInvocation *invocation, const GError *error);

/* @error: taken. */
void call_take_error(GDBusMethodInvocation *invocation, GError *error);

#endif
