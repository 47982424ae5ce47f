// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
)

// serveControl is the interface of tests and the judge: the call log, what was launched, faults and
// settings. It speaks JSON and is no part of AWS.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path[len("/_fake/"):]
	if r.Method != http.MethodGet {
		s.changeControl(w, r, path)
		return
	}
	switch path {
	case "healthz":
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	case "calls":
		writeJSON(w, http.StatusOK, s.callsSince(queryInt(r, "since")))
	case "instances":
		writeJSON(w, http.StatusOK, s.Instances())
	case "launch-templates":
		writeJSON(w, http.StatusOK, s.LaunchTemplates())
	case "prices":
		writeJSON(w, http.StatusOK, Prices())
	case "faults":
		writeJSON(w, http.StatusOK, s.Faults())
	case "rates":
		writeJSON(w, http.StatusOK, s.Rates())
	case "settings":
		writeJSON(w, http.StatusOK, s.Settings())
	default:
		writeJSON(w, http.StatusNotFound, map[string]string{"error": "no such path: " + path})
	}
}

func (s *Server) changeControl(w http.ResponseWriter, r *http.Request, path string) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		refuse(w, err)
		return
	}
	switch r.Method + " " + path {
	case "POST faults":
		var rule Rule
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&rule); err != nil {
			refuse(w, err)
			return
		}
		id, err := s.addFault(rule)
		if err != nil {
			refuse(w, err)
			return
		}
		writeJSON(w, http.StatusOK, map[string]string{"id": id})
	case "DELETE faults":
		s.DeleteFault(r.URL.Query().Get("id"))
		writeJSON(w, http.StatusOK, map[string]string{})
	case "POST settings":
		settings, err := s.Settings().patched(body)
		if err != nil {
			refuse(w, err)
			return
		}
		s.SetSettings(settings)
		writeJSON(w, http.StatusOK, settings)
	default:
		writeJSON(w, http.StatusMethodNotAllowed, map[string]string{"error": r.Method + " is not served on " + path})
	}
}

func refuse(w http.ResponseWriter, err error) {
	writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
}

// writeJSON answers; an unwritable reply means that the client is gone.
func writeJSON(w http.ResponseWriter, status int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"encoding the reply"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}
