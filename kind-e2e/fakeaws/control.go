// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
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
	case "capacity-reservations":
		writeJSON(w, http.StatusOK, s.CapacityReservations())
	case "queues":
		writeJSON(w, http.StatusOK, s.Queues())
	case "subnets":
		writeJSON(w, http.StatusOK, s.Subnets())
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
	change, ok := changes[r.Method+" "+path]
	if !ok {
		writeJSON(w, http.StatusMethodNotAllowed, map[string]string{"error": r.Method + " is not served on " + path})
		return
	}
	reply, err := change(s, r.URL.Query(), body)
	if err != nil {
		refuse(w, err)
		return
	}
	writeJSON(w, http.StatusOK, reply)
}

type answerID struct {
	ID string `json:"id"`
}

// changes are what the control API can change, by method and path.
var changes = map[string]func(s *Server, query url.Values, body []byte) (any, error){
	"POST faults": decoded(func(s *Server, rule Rule) (any, error) {
		id, err := s.addFault(rule)
		return answerID{id}, err
	}),
	"DELETE faults": func(s *Server, query url.Values, _ []byte) (any, error) {
		s.DeleteFault(query.Get("id"))
		return struct{}{}, nil
	},
	"POST settings": func(s *Server, _ url.Values, body []byte) (any, error) {
		settings, err := s.Settings().patched(body)
		if err == nil {
			s.SetSettings(settings)
		}
		return settings, err
	},
	"POST images": decoded(func(s *Server, image Image) (any, error) { return answerID{s.SetImage(image)}, nil }),
	"POST capacity-reservations": decoded(func(s *Server, cr CapacityReservation) (any, error) {
		return answerID{s.SetCapacityReservation(cr)}, nil
	}),
	"POST placement-groups": decoded(func(s *Server, g PlacementGroup) (any, error) { return answerID{s.SetPlacementGroup(g)}, nil }),
	"POST warnings":         decoded(func(s *Server, w Warning) (any, error) { return struct{}{}, s.Warn(w) }),
	"POST parameters": decoded(func(s *Server, p struct{ Name, Value string }) (any, error) {
		s.SetParameter(p.Name, p.Value)
		return struct{}{}, nil
	}),
	"POST queues": decoded(func(s *Server, q struct{ Name string }) (any, error) {
		s.CreateQueue(q.Name)
		return struct{}{}, nil
	}),
	"DELETE queues": func(s *Server, query url.Values, _ []byte) (any, error) {
		s.DeleteQueue(query.Get("name"))
		return struct{}{}, nil
	},
	"POST messages": decoded(func(s *Server, m struct{ Queue, Body string }) (any, error) {
		if !s.SendMessage(m.Queue, m.Body) {
			return nil, fmt.Errorf("no queue %q", m.Queue)
		}
		return struct{}{}, nil
	}),
	"POST health": decoded(func(s *Server, h struct {
		Health

		InstanceID string `json:"instanceId"`
	},
	) (any, error) {
		if !s.SetHealth(h.InstanceID, h.Health) {
			return nil, fmt.Errorf("no instance %q", h.InstanceID)
		}
		return struct{}{}, nil
	}),
}

// decoded is a change that reads its body as JSON. Unknown fields are an error.
func decoded[T any](change func(*Server, T) (any, error)) func(*Server, url.Values, []byte) (any, error) {
	return func(s *Server, _ url.Values, body []byte) (any, error) {
		var in T
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&in); err != nil {
			return nil, fmt.Errorf("reading the request: %w", err)
		}
		return change(s, in)
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
