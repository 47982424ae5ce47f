// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/cluster"
)

// Fake is the running AWS endpoint and its control API.
type Fake struct {
	URL string
}

// startFake builds and starts the endpoint as a process of its own: it outlives every restart of the product.
func (e *Env) startFake(ctx context.Context, name string, boot time.Duration) (*Fake, error) {
	path, err := e.build(ctx, "fakeaws", "./kind-e2e/cmd/fakeaws")
	if err != nil {
		return nil, err
	}
	ca, portFile := filepath.Join(e.Cluster.Dir, name+"-ca.crt"), filepath.Join(e.Cluster.Dir, name+".port")
	if err := os.WriteFile(ca, e.Cluster.CAPEM, 0o600); err != nil {
		return nil, err
	}
	p, err := e.run(cluster.ProcessSpec{Name: name, Path: path, Args: []string{
		"--port-file", portFile, "--cluster-endpoint", e.Cluster.Endpoint, "--cluster-ca-file", ca,
		"--client-ca-cert", e.Cluster.ClientCA.CertPath, "--client-ca-key", e.Cluster.ClientCA.KeyPath,
		"--boot-delay", (boot / 2).String(), "--join-delay", (boot / 4).String(), "--ready-delay", (boot / 4).String(),
		"--terminate-delay", "1s", "-v",
	}})
	if err != nil {
		return nil, err
	}
	for {
		if text, err := os.ReadFile(portFile); err == nil {
			return &Fake{URL: "http://" + strings.TrimSpace(string(text))}, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.Done():
			return nil, fmt.Errorf("fakeaws ended: %w\n%s", p.Err(), p.Tail(20))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Fault sets a fault rule and returns its id; see the endpoint's control API for the fields.
func (f *Fake) Fault(ctx context.Context, rule map[string]any) (string, error) {
	var answer struct{ ID string }
	err := f.call(ctx, http.MethodPost, "/_fake/faults", rule, &answer)
	return answer.ID, err
}

// Fired is how often all fault rules that are set have fired.
func (f *Fake) Fired(ctx context.Context) (int, error) {
	var rules []struct{ Fired int }
	err := f.call(ctx, http.MethodGet, "/_fake/faults", nil, &rules)
	sum := 0
	for _, r := range rules {
		sum += r.Fired
	}
	return sum, err
}

// FiredRule is how often one fault rule has fired.
func (f *Fake) FiredRule(ctx context.Context, id string) (int, error) {
	var rules []struct {
		ID    string
		Fired int
	}
	err := f.call(ctx, http.MethodGet, "/_fake/faults", nil, &rules)
	for _, r := range rules {
		if r.ID == id {
			return r.Fired, err
		}
	}
	return 0, err
}

// ClearFault removes one fault rule.
func (f *Fake) ClearFault(ctx context.Context, id string) error {
	return f.call(ctx, http.MethodDelete, "/_fake/faults?id="+url.QueryEscape(id), nil, nil)
}

// ClearFaults removes all fault rules.
func (f *Fake) ClearFaults(ctx context.Context) error {
	return f.call(ctx, http.MethodDelete, "/_fake/faults", nil, nil)
}

// Set changes settings of the endpoint.
func (f *Fake) Set(ctx context.Context, settings map[string]any) error {
	return f.call(ctx, http.MethodPost, "/_fake/settings", settings, nil)
}

func (f *Fake) call(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, f.URL+path, body)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	if out == nil || len(text) == 0 {
		return nil
	}
	return json.Unmarshal(text, out)
}
