// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/cluster"
	"github.com/jit-scheduler/jit-scheduler/manifests"
)

// rbacName is what the check after the cases is called.
const rbacName = "rbac"

// checkRBAC holds the whole run's audit log against what manifests/ ships: all requests of the product under its
// ServiceAccount, none refused and, if all cases ran, every rule used or listed with its reason.
func (e *Env) checkRBAC(all bool) bool {
	events, err := e.Cluster.AuditEvents()
	if err != nil {
		e.Say("--- FAIL %s: %v", rbacName, err)
		return false
	}
	faults, requests := strangers(events)
	permissions, err := manifests.Permissions()
	if err != nil {
		faults = append(faults, err.Error())
	}
	if all {
		faults = append(faults, unused(permissions, events)...)
	}
	for _, fault := range faults {
		e.Say("    %s", fault)
	}
	if len(faults) > 0 {
		e.Say("--- FAIL %s: %d faults in %d requests of the product", rbacName, len(faults), requests)
		return false
	}
	judged := "every shipped rule used or listed"
	if !all {
		judged = "rules not judged, as not all cases ran"
	}
	e.Say("--- PASS %s: %d requests of the product under its ServiceAccount, none refused; %s", rbacName, requests, judged)
	return true
}

// strangers lists requests of the product under another identity or refused, each kind once, and counts its requests.
func strangers(events []cluster.AuditEvent) (faults []string, requests int) {
	account := "system:serviceaccount:" + productNamespace + ":" + productAccount
	seen := map[string]int{}
	for i := range events {
		ev := &events[i]
		if ev.User != account && !strings.HasPrefix(ev.UserAgent, "jit-scheduler/") {
			continue
		}
		requests++
		switch {
		case ev.User != account:
			seen[fmt.Sprintf("%s %s as %s", ev.Verb, resourceOf(ev), ev.User)]++
		case ev.Code == 403 && ev.Decision == "forbid":
			seen[fmt.Sprintf("%s %s was refused: %s", ev.Verb, resourceOf(ev), ev.Reason)]++
		}
	}
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		faults = append(faults, fmt.Sprintf("%s (%d times)", what, seen[what]))
	}
	return faults, requests
}

// unused lists the shipped permissions that no request needed and that are not listed with a reason. A watch that
// streams its first list counts as that list: clients fall back to it where the API server cannot stream.
func unused(permissions []manifests.Permission, events []cluster.AuditEvent) []string {
	account := "system:serviceaccount:" + productNamespace + ":" + productAccount
	type need struct{ group, resource, verb string }
	used := map[need]bool{}
	for i := range events {
		if ev := &events[i]; ev.User == account && ev.Code < 400 {
			used[need{ev.APIGroup, resourceOf(ev), ev.Verb}] = true
			if ev.Verb == "watch" && strings.Contains(ev.URI, "sendInitialEvents=true") {
				used[need{ev.APIGroup, resourceOf(ev), "list"}] = true
			}
		}
	}
	var faults []string
	for _, p := range permissions {
		if _, listed := manifests.MayStayUnused[p]; !listed && !used[need{p.APIGroup, p.Resource, p.Verb}] {
			faults = append(faults, fmt.Sprintf("%s may %s %s.%s, which no case needed", p.Role, p.Verb, p.Resource, p.APIGroup))
		}
	}
	return faults
}

func resourceOf(ev *cluster.AuditEvent) string {
	if ev.Subresource == "" {
		return ev.Resource
	}
	return ev.Resource + "/" + ev.Subresource
}
