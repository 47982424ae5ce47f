// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// statusReset stands in the log for a call that was neither acted on nor answered.
const statusReset = 499

// ServeHTTP answers AWS calls on / and the control API under /_fake/. It panics with
// http.ErrAbortHandler to reset a connection that cannot be taken over.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.serve(w, r) {
		return
	}
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // close with a reset; a failure means that it is closed already
	}
	_ = conn.Close() // there is nobody left to tell
}

// serve reports false when the connection is to be reset instead of answered.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) bool {
	if strings.HasPrefix(r.URL.Path, "/_fake/") {
		s.serveControl(w, r)
		return true
	}
	if s.ctx.Err() != nil {
		return false
	}
	req, err := parseRequest(r)
	if err != nil {
		s.log.Error("unknown call", slog.Any("err", err))
		writeReply(w, req, nil, errorf("UnknownOperationException", "%v", err))
		return true
	}
	return s.answer(w, req)
}

func (s *Server) answer(w http.ResponseWriter, req *request) bool {
	call := s.logCall(req)
	effect := s.fire(s.subjectOf(req))
	req.effect = effect
	if !sleep(s.ctx, effect.delay) || effect.drop { // AWS acts on a request even if its sender is gone
		s.finishCall(call, req, statusReset, "ConnectionReset")
		return false
	}
	var body any
	err := effect.err
	if effect.failAfter {
		err = nil
	}
	if err == nil && !s.admit(req) {
		err = errorf("RequestLimitExceeded", "Request limit exceeded.")
	}
	if err == nil {
		body, err = s.act(req)
	}
	if effect.failAfter && err == nil {
		body, err = nil, effect.err
	}
	if effect.dryRunSucceeds && err != nil && err.Code == "DryRunOperation" {
		body, err = nil, nil
	}
	status, code := http.StatusOK, ""
	if err != nil {
		status, code = err.httpStatus(), err.Code
	}
	s.finishCall(call, req, status, code)
	if effect.withhold { // the log tells what was done, which the client never learns
		s.hang(req.http.Context())
		return false
	}
	writeReply(w, req, body, err)
	return true
}

func (s *Server) hang(client context.Context) {
	ctx, cancel := context.WithCancel(client)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	sleep(ctx, s.Settings().WithholdFor.Duration)
}

// act runs the action. Errors that are not AWS's own are the fake's faults.
func (s *Server) act(req *request) (any, *apiError) {
	handler, ok := actions[req.service+"/"+req.action]
	if !ok {
		s.log.Error("unknown action", slog.String("service", req.service), slog.String("action", req.action))
		return nil, errorf("InvalidAction", "The action %s is not valid for this web service.", req.action)
	}
	if err := checkKeys(req); err != nil {
		s.log.Error("unknown parameter", slog.String("service", req.service), slog.String("action", req.action), slog.String("message", err.Message))
		return nil, err
	}
	body, err := handler(s, req)
	if err == nil && req.effect.empty {
		return emptied(body), nil
	}
	if err == nil {
		return body, nil
	}
	if known, ok := errors.AsType[*apiError](err); ok {
		return nil, known
	}
	s.log.Error("call failed", slog.String("action", req.action), slog.Any("err", err))
	return nil, errorf("InternalError", "%v", err)
}

func queryInt(r *http.Request, key string) int {
	n, err := strconv.Atoi(r.URL.Query().Get(key))
	if err != nil {
		return 0
	}
	return n
}
