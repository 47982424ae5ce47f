// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var claimRefusedCase = Case{
	Name:  "claim-refused",
	About: "the API server refuses NodeClaims: the planned node is withdrawn, the event says why; it recovers when they are allowed",
	Rules: judge.Rules{AllowUnlaunched: true},
	Run:   runClaimRefused,
}

// refusedBecause is what the policy says.
const refusedBecause = "no machines on a Friday"

const denyClaims = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: e2e-no-nodeclaims}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [karpenter.sh], apiVersions: ["*"], operations: [CREATE], resources: [nodeclaims]}
  validations:
  - {expression: "false", message: "` + refusedBecause + `"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: e2e-no-nodeclaims}
spec: {policyName: e2e-no-nodeclaims, validationActions: [Deny]}
`

func runClaimRefused(ctx context.Context, t *Trial) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.Buyable(ctx); err != nil {
		return err
	}
	if err := t.waitBuyable(ctx); err != nil {
		return err
	}
	t.Cleanup(t.allowClaims)
	if err := t.Cluster.Apply(ctx, []byte(denyClaims)); err != nil {
		return err
	}
	if err := t.waitDenied(ctx); err != nil {
		return err
	}
	if err := t.Create(ctx, t.Series("waiting", 3, "1")...); err != nil {
		return err
	}
	err := t.Wait(ctx, settleTimeout, func(v *judge.View) string {
		for _, pod := range v.Select(t.App("waiting")) {
			if v.HasEvent("Pod", t.Namespace, pod.Name, "", refusedBecause) {
				return ""
			}
		}
		return fmt.Sprintf("no event says %q; waiting-0 has %q", refusedBecause, v.Events("Pod", t.Namespace, "waiting-0"))
	})
	if err != nil {
		return err
	}
	if err := t.Stays(ctx, 2*time.Second, nothingLaunched); err != nil {
		return err
	}
	if err := t.allowClaims(ctx); err != nil {
		return err
	}
	return t.WaitBound(ctx, "waiting", 3, 90*time.Second)
}

func (t *Trial) allowClaims(ctx context.Context) error {
	return t.kubectl(ctx, "delete", "--ignore-not-found", "validatingadmissionpolicybinding/e2e-no-nodeclaims", "validatingadmissionpolicy/e2e-no-nodeclaims")
}

// waitDenied waits until the API server refuses NodeClaims for the policy's reason: policies take a moment.
func (t *Trial) waitDenied(ctx context.Context) error {
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": map[string]any{"name": "e2e-probe"},
		"spec": map[string]any{
			"requirements": []any{},
			"nodeClassRef": map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
		},
	}}
	return poll(ctx, settleTimeout, func(ctx context.Context) (string, error) {
		_, err := t.Dynamic.Resource(gvrNodeClaims).Create(ctx, claim, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), refusedBecause) {
			return fmt.Sprintf("NodeClaims are not refused by the policy (%v)", err), nil
		}
		return "", nil
	})
}
