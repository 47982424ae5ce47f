// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// waitSeen waits until the user can read of the fault, or, if there is nothing to read, until the pod is bound.
func (t *Trial) waitSeen(ctx context.Context, row *faultRow) (string, error) {
	if len(row.saw) == 0 {
		return "nothing: the pod was bound", nil
	}
	var found string
	var lines []string
	err := poll(ctx, faultShows, func(ctx context.Context) (string, error) {
		var err error
		if lines, err = t.readable(ctx, row); err != nil {
			return "", err
		}
		for _, line := range lines {
			if !slices.ContainsFunc(row.saw, func(part string) bool { return !strings.Contains(line, part) }) {
				found = line
				return "", nil
			}
		}
		return fmt.Sprintf("no line has %q; there are %q", row.saw, lines), nil
	})
	if err != nil {
		return "not that", err
	}
	return shorten(found), nil
}

// shorten keeps a line of the table readable.
func shorten(line string) string {
	const most = 150
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return line
}

// readable are the lines that kubectl describe shows of the row's objects: events, and conditions that are not true.
func (t *Trial) readable(ctx context.Context, row *faultRow) ([]string, error) {
	lines, err := t.eventLines(ctx, row)
	if err != nil {
		return nil, err
	}
	for _, of := range []struct {
		gvr  schema.GroupVersionResource
		kind string
	}{{gvrNodeClaims, "NodeClaim"}, {gvrNodePools, "NodePool"}, {gvrNodeClasses, "EC2NodeClass"}} {
		list, err := t.Dynamic.Resource(of.gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if about(list.Items[i].GetName(), row.name) {
				lines = append(lines, conditionLines(of.kind, &list.Items[i])...)
			}
		}
	}
	return lines, nil
}

// eventLines lists the warnings first.
func (t *Trial) eventLines(ctx context.Context, row *faultRow) ([]string, error) {
	events, err := t.Kube.CoreV1().Events("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var warnings, others []string
	for i := range events.Items {
		e := &events.Items[i]
		if !about(e.InvolvedObject.Name, row.name) {
			continue
		}
		line := fmt.Sprintf("%s %s: %s", e.InvolvedObject.Kind, e.Reason, e.Message)
		if e.Type == corev1.EventTypeWarning {
			warnings = append(warnings, line)
		} else {
			others = append(others, line)
		}
	}
	return append(warnings, others...), nil
}

// about says whether an object is the row's own: named like it, or made for it.
func about(name, row string) bool { return name == row || strings.HasPrefix(name, row+"-") }

func conditionLines(kind string, object *unstructured.Unstructured) []string {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return nil
	}
	var lines []string
	for _, item := range conditions {
		c, ok := item.(map[string]any)
		if ok && c["status"] != "True" {
			lines = append(lines, fmt.Sprintf("%s %v=%v %v: %v", kind, c["type"], c["status"], c["reason"], c["message"]))
		}
	}
	return lines
}
