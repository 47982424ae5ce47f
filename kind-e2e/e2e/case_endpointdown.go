// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var endpointDownCase = Case{
	Name:  "endpoint-down",
	About: "AWS does not answer, refuses the credentials, or knows no such cluster: existing nodes are used, not ready, recovers unaided",
	Rules: judge.Rules{AllowUnlaunched: true},
	Run:   runEndpointDown,
}

// outages are what keeps AWS from being used, and what readiness must say of it besides the endpoint.
var outages = []struct {
	name  string
	fault map[string]any
	says  string
}{
	{"endpoint down", map[string]any{"dropRequest": true}, ""},
	{"credentials expired", map[string]any{"code": "ExpiredTokenException", "status": 403, "message": "The security token included in the request is expired"}, "expired"},
	{"cluster not found", map[string]any{"service": "eks", "code": "ResourceNotFoundException", "message": "No cluster found for name: demo."}, "demo"},
}

func runEndpointDown(ctx context.Context, t *Trial) error {
	if err := t.AddNode(ctx, "existing", "4"); err != nil {
		return err
	}
	if err := t.Buyable(ctx); err != nil {
		return err
	}
	for i, o := range outages {
		if _, err := t.Fake.Fault(ctx, o.fault); err != nil {
			return err
		}
		if err := t.Start(ctx); err != nil {
			return err
		}
		if err := t.outage(ctx, i, o.says); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
		if err := t.Kill(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *Trial) outage(ctx context.Context, i int, says string) error {
	host := strings.TrimPrefix(t.Fake.URL, "http://")
	if err := t.waitReadiness(ctx, http.StatusInternalServerError, host, says); err != nil {
		return err
	}
	fits, needs := fmt.Sprintf("fits-%d", i), fmt.Sprintf("needs-%d", i)
	if err := t.Create(ctx, t.Pod(fits, fits, "1"), t.Pod(needs, needs, "20")); err != nil {
		return err
	}
	if err := t.WaitBound(ctx, fits, 1, settleTimeout); err != nil {
		return err
	}
	if err := t.Fake.ClearFaults(ctx); err != nil {
		return err
	}
	if err := t.waitReadiness(ctx, http.StatusOK); err != nil {
		return err
	}
	return t.WaitBound(ctx, needs, 1, time.Minute)
}

// waitReadiness waits until the readiness of the provisioner is that, and says all that.
func (t *Trial) waitReadiness(ctx context.Context, want int, says ...string) error {
	return poll(ctx, settleTimeout, func(ctx context.Context) (string, error) {
		status, _, err := t.get(ctx, t.Product, "/readyz")
		if err != nil {
			return "", err
		}
		part, text, err := t.get(ctx, t.Product, "/readyz/provisioner")
		if err != nil {
			return "", err
		}
		if status != want || part != want {
			return fmt.Sprintf("/readyz is %d and /readyz/provisioner %d (%s), wanted %d", status, part, text, want), nil
		}
		for _, s := range says {
			if !strings.Contains(text, s) {
				return fmt.Sprintf("/readyz/provisioner does not say %q: %s", s, text), nil
			}
		}
		return "", nil
	})
}
