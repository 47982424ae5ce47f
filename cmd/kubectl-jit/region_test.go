// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
)

// inRegion runs the command against a fake AWS and a cluster with the NodeClass.
func inRegion(t *testing.T, server *fakeaws.Server, class *unstructured.Unstructured, args ...string) (code int, got []typeView, errs string) {
	t.Helper()
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{classResource: classKind + "List"})
	if class != nil {
		if err := client.Tracker().Create(classResource, class, ""); err != nil {
			t.Fatal(err)
		}
	}
	var out, stderr strings.Builder
	w := world{
		in: strings.NewReader(""), out: &out, err: &stderr,
		aws:     func(context.Context, string) (aws.Config, error) { return server.AWSConfig("AKIATEST"), nil },
		cluster: func(string, string) (dynamic.Interface, error) { return client, nil },
	}
	code = run(t.Context(), w, append([]string{"types", "-o", "json"}, args...))
	if code == 0 {
		if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
			t.Fatal(err)
		}
	}
	for _, action := range client.Actions() {
		if action.GetVerb() != "get" {
			t.Errorf("the cluster was asked to %s", action.GetVerb())
		}
	}
	return code, got, stderr.String()
}

func TestTypesOfRegion(t *testing.T) {
	t.Parallel()
	server := fakeaws.New(fakeaws.Options{ClusterName: "demo"})
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "class.yaml")
	text := "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nspec:\n  subnetSelectorTerms:\n  - tags:\n      karpenter.sh/discovery: SELECTED\n"
	object := func(zones ...any) *unstructured.Unstructured {
		var subnets []any
		for _, zone := range zones {
			subnets = append(subnets, map[string]any{"id": "subnet-1", "zone": zone, "zoneID": "use1-az7"})
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "karpenter.k8s.aws/v1", "kind": classKind, "metadata": map[string]any{"name": "small"},
			"spec":   map[string]any{"amiSelectorTerms": []any{map[string]any{"alias": "al2023@latest"}}, "kubelet": map[string]any{"maxPods": int64(7)}},
			"status": map[string]any{"subnets": subnets},
		}}
	}
	cases := map[string]struct {
		selected string
		args     []string
		code     int
		zones    []string
		pods     string
		errs     string
	}{
		"defaults":             {args: nil, zones: []string{"us-east-1a", "us-east-1b", "us-east-1c"}, pods: "29", errs: "note: no --nodeclass"},
		"zones":                {args: []string{"--zones", "us-east-1b"}, zones: []string{"us-east-1b"}, pods: "29", errs: "note: no --nodeclass"},
		"file":                 {selected: "demo", args: []string{"--nodeclass", file}, zones: []string{"us-east-1a", "us-east-1b", "us-east-1c"}, pods: "29"},
		"file without subnets": {selected: "other", args: []string{"--nodeclass", file}, code: exitBadInput, errs: "error: " + file + ": document 1, line 4: spec.subnetSelectorTerms: "},
		"object":               {args: []string{"--nodeclass", "small"}, zones: []string{"us-east-1c"}, pods: "7"},
		"no object":            {args: []string{"--nodeclass", "large"}, code: exitBadInput, errs: "error: --nodeclass large: no such file, and the cluster has no EC2NodeClass"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(strings.Replace(text, "SELECTED", c.selected, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			code, got, errs := inRegion(t, server, object("us-east-1c"), c.args...)
			if code != c.code || !strings.HasPrefix(errs, c.errs) || (c.errs == "" && errs != "") {
				t.Fatalf("exit code %d, stderr %q, want %d, %q…", code, errs, c.code, c.errs)
			}
			if c.code != 0 {
				return
			}
			i := slices.IndexFunc(got, func(v typeView) bool { return v.Name == "m5.large" })
			if i < 0 {
				t.Fatalf("no m5.large among %d types", len(got))
			}
			if diff := cmp.Diff(c.zones, got[i].Labels["topology.kubernetes.io/zone"]); diff != "" || got[i].Capacity["pods"] != c.pods {
				t.Errorf("pods %s, want %s; zones (-want +got):\n%s", got[i].Capacity["pods"], c.pods, diff)
			}
			if diff := cmp.Diff([]string{"on-demand", "spot"}, got[i].Labels["karpenter.sh/capacity-type"]); diff != "" {
				t.Errorf("capacity types (-want +got):\n%s", diff)
			}
			if id := got[i].Labels["topology.k8s.aws/zone-id"]; (len(id) > 0) != slices.Contains(c.args, "--nodeclass") {
				t.Errorf("zone ids %v", id)
			}
		})
	}
	for _, call := range server.Calls() {
		if !strings.HasPrefix(call.Action, "Describe") && !strings.HasPrefix(call.Action, "Get") {
			t.Errorf("AWS was asked to %s", call.Action)
		}
	}
}

func TestTypesWithoutAWS(t *testing.T) {
	t.Parallel()
	server := fakeaws.New(fakeaws.Options{ClusterName: "demo"})
	t.Cleanup(server.Close)
	server.SetFault(fakeaws.Rule{Action: "DescribeInstanceTypes", Code: "UnauthorizedOperation", Message: "no", Status: 403})
	code, _, errs := inRegion(t, server, nil)
	if code != exitFailed || !strings.Contains(errs, "UnauthorizedOperation") {
		t.Errorf("exit code %d, stderr %q, want %d and the reason", code, errs, exitFailed)
	}
}
