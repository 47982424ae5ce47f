// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
)

var familiesCase = Case{
	Name:  "families",
	About: "machines of every image family boot from user data merged with the class's own; one that could not is refused with its path",
	Run:   runFamilies,
}

// bootingClass is a class with user data of its own, and what its machines show of it.
type bootingClass struct {
	name    string
	changes []change
	osImage string // begins so
	label   string // of the class's own user data, key=value
	pods    string // capacity
}

var bootingClasses = []bootingClass{
	{
		name: "al2023", osImage: "Amazon Linux 2023", label: "boot=nodeadm", pods: "17",
		changes: []change{
			{"spec.kubelet", map[string]any{"maxPods": int64(17), "systemReserved": map[string]any{"cpu": "100m"}}},
			{"spec.userData", "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"BOUNDARY\"\n\n--BOUNDARY\nContent-Type: text/x-shellscript\n\n#!/bin/sh\necho hi\n" +
				"--BOUNDARY\nContent-Type: application/node.eks.aws\n\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config: {maxPods: 7}\n    flags: [--node-labels=boot=nodeadm]\n--BOUNDARY--\n"},
		},
	},
	{
		name: "bottlerocket", osImage: "Bottlerocket OS", label: "boot=toml", pods: "19",
		changes: []change{
			{"spec.amiSelectorTerms", []any{map[string]any{"alias": "bottlerocket@latest"}}},
			{"spec.kubelet", map[string]any{"maxPods": int64(19)}},
			{"spec.userData", "[settings.kubernetes]\nmax-pods = 7\n[settings.kubernetes.node-labels]\nboot = 'toml'\n[settings.kernel.sysctl]\n'vm.max_map_count' = '262144'\n"},
		},
	},
}

func runFamilies(ctx context.Context, t *Trial) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	ref := func(class string) change { return change{"spec.template.spec.nodeClassRef.name", class} }
	var pods []*corev1.Pod
	for _, c := range bootingClasses {
		startup := change{"spec.template.spec.startupTaints", []any{map[string]any{"key": "boot", "effect": "NoSchedule"}}}
		if err := errors.Join(t.NodeClass(ctx, c.name, c.changes...), t.NodePool(ctx, c.name, ref(c.name), startup)); err != nil {
			return err
		}
		pods = append(pods, t.Pod("boot", "on-"+c.name, "1", onPool(c.name)))
	}
	if err := t.kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "ec2nodeclass", "--all"); err != nil {
		return err
	}
	if err := t.Create(ctx, pods...); err != nil {
		return err
	}
	for _, c := range bootingClasses {
		if err := t.checkBooted(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	if err := t.WaitBound(ctx, "boot", len(pods), time.Minute); err != nil {
		return err
	}
	return t.refusedUserData(ctx)
}

// checkBooted waits for the machine of the class, looks at what it brought, and ends its startup taint.
func (t *Trial) checkBooted(ctx context.Context, c bootingClass) error {
	var node *corev1.Node
	err := poll(ctx, time.Minute, func(ctx context.Context) (string, error) {
		list, err := t.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "karpenter.sh/nodepool=" + c.name})
		if err != nil || len(list.Items) != 1 {
			return "no node", err
		}
		node = &list.Items[0]
		return "", nil
	})
	if err != nil {
		return err
	}
	key, value, _ := strings.Cut(c.label, "=")
	tainted := slices.ContainsFunc(node.Spec.Taints, isBoot)
	got := node.Status.Capacity.Pods().String()
	if !strings.HasPrefix(node.Status.NodeInfo.OSImage, c.osImage) || node.Labels[key] != value || got != c.pods || !tainted {
		return fmt.Errorf("image %q, label %s=%q, %s pods, startup taint %t", node.Status.NodeInfo.OSImage, key, node.Labels[key], got, tainted)
	}
	nodes := t.Kube.CoreV1().Nodes()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := nodes.Get(ctx, node.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.Spec.Taints = slices.DeleteFunc(now.Spec.Taints, isBoot)
		_, err = nodes.Update(ctx, now, metav1.UpdateOptions{})
		return err
	})
}

func isBoot(taint corev1.Taint) bool { return taint.Key == "boot" }

var nodeClassResource = schema.GroupVersionResource{Group: "karpenter.k8s.aws", Version: "v1", Resource: "ec2nodeclasses"}

// refusedUserData gives classes user data that no machine could boot with.
func (t *Trial) refusedUserData(ctx context.Context) error {
	for name, bad := range map[string]struct{ of, userData, says string }{
		"too-long": {"al2023", "#!/bin/sh\n" + strings.Repeat("#", 16384), "spec.userData: user data is limited to 16384 bytes"},
		"no-toml":  {"bottlerocket", "#!/bin/sh\necho hi\n", "spec.userData: TOML"},
		"no-kind":  {"al2023", "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: application/node.eks.aws\n\nkind: Pod\n--B--\n", "spec.userData: MIME part 1"},
	} {
		alias := change{"spec.amiSelectorTerms", []any{map[string]any{"alias": bad.of + "@latest"}}}
		if err := t.NodeClass(ctx, name, alias, change{"spec.userData", bad.userData}); err != nil {
			return err
		}
		err := poll(ctx, settleTimeout, func(ctx context.Context) (string, error) {
			class, err := t.Dynamic.Resource(nodeClassResource).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			return lacksCondition(class, "ValidationSucceeded", bad.says), nil
		})
		if err != nil {
			return fmt.Errorf("class %s: %w", name, err)
		}
	}
	return nil
}

// lacksCondition says what a False condition with that message lacks.
func lacksCondition(object *unstructured.Unstructured, kind, says string) string {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return err.Error()
	}
	for _, item := range conditions {
		condition, ok := item.(map[string]any)
		if !ok || condition["type"] != kind {
			continue
		}
		message, _ := condition["message"].(string)
		if condition["status"] == "False" && strings.Contains(message, says) {
			return ""
		}
		return fmt.Sprintf("condition %s is %v: %s", kind, condition["status"], message)
	}
	return "no condition " + kind
}
