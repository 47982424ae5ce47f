// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	pollEvery = 100 * time.Millisecond
	// logTail is how many lines of a failed component's log an error shows.
	logTail = 15
)

// waitReady waits until url, which is of process, answers 200 to the admin, or a
// process ends: a component may never be ready because an earlier one has died.
func (c *Cluster) waitReady(ctx context.Context, process *Process, url string) error {
	transport, err := rest.TransportFor(c.Config())
	if err != nil {
		return err
	}
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	last := "no answer yet"
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			last = resp.Status
		} else if ctx.Err() == nil {
			last = err.Error()
		}
		for _, p := range append(slices.Clone(c.processes), process) {
			if p.ended() {
				return p.failure("ended before all were ready")
			}
		}
		select {
		case <-ctx.Done():
			return process.failure(fmt.Sprintf("is not ready (%s): %v", last, ctx.Err()))
		case <-time.After(pollEvery):
		}
	}
}

// waitServiceAccount waits until the controllers have made what pods of the
// default namespace need, so that the first pod is not refused.
func (c *Cluster) waitServiceAccount(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	for {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("waiting for the default service account: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the default service account: %w", ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

// failure is an error that shows the end of the log.
func (p *Process) failure(what string) error {
	if err := p.Err(); err != nil {
		what += fmt.Sprintf(" (%v)", err)
	}
	return fmt.Errorf("%s %s; the end of %s:\n%s", p.name, what, p.logPath, p.Tail(logTail))
}
