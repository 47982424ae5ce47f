// SPDX-License-Identifier: Apache-2.0

package allocatable

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func list(cpu, memory string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
}

func machine(name, image, settings, cpu, memory string) *cloudprovider.InstanceType {
	capacity := list(cpu, memory)
	more := capacity[v1.ResourceMemory]
	more.Add(resource.MustParse("1Gi"))
	capacity[v1.ResourceMemory] = more
	return &cloudprovider.InstanceType{Name: name, ImageID: image, Settings: settings, Capacity: capacity, Allocatable: list(cpu, memory)}
}

type report struct {
	key         Key
	node        string
	cpu, memory string
	ago         time.Duration
}

func TestApply(t *testing.T) {
	t.Parallel()
	small, big := Key{"small", "ami-1", "s"}, Key{"big", "ami-1", "s"}
	cases := map[string]struct {
		reports []report
		// want memory of small (8Gi estimated), big (64Gi), and other (8Gi, another image).
		want [3]string
		// wantCPU of small, 2 estimated.
		wantCPU string
	}{
		"nothing known":                        {want: [3]string{"8Gi", "64Gi", "8Gi"}, wantCPU: "2"},
		"less":                                 {reports: []report{{small, "a", "2", "7Gi", 2 * time.Hour}}, want: [3]string{"7Gi", "64Gi", "8Gi"}, wantCPU: "2"},
		"more":                                 {reports: []report{{small, "a", "2", "9Gi", 0}}, want: [3]string{"9Gi", "64Gi", "8Gi"}, wantCPU: "2"},
		"the least of several":                 {reports: []report{{small, "a", "2", "9Gi", 0}, {small, "b", "1", "10Gi", 0}}, want: [3]string{"9Gi", "64Gi", "8Gi"}, wantCPU: "1"},
		"a node corrects itself":               {reports: []report{{small, "a", "1", "1Gi", 0}, {small, "a", "2", "9Gi", 0}}, want: [3]string{"9Gi", "64Gi", "8Gi"}, wantCPU: "2"},
		"nobody else corrects it":              {reports: []report{{small, "a", "1", "9Gi", 0}, {small, "b", "2", "9Gi", 0}}, want: [3]string{"9Gi", "64Gi", "8Gi"}, wantCPU: "1"},
		"a kubelet that knows nothing yet":     {reports: []report{{small, "a", "0", "0", 0}}, want: [3]string{"8Gi", "64Gi", "8Gi"}, wantCPU: "2"},
		"kin are doubted by the amount":        {reports: []report{{small, "a", "2", "7Gi", 0}}, want: [3]string{"7Gi", "63Gi", "8Gi"}, wantCPU: "2"},
		"or by the share":                      {reports: []report{{big, "a", "16", "56Gi", 0}}, want: [3]string{"7Gi", "56Gi", "8Gi"}, wantCPU: "2"},
		"for a while":                          {reports: []report{{big, "a", "16", "56Gi", time.Hour}}, want: [3]string{"8Gi", "56Gi", "8Gi"}, wantCPU: "2"},
		"not if another type is as estimated":  {reports: []report{{big, "a", "16", "56Gi", 0}, {Key{"middle", "ami-1", "s"}, "b", "4", "16Gi", 0}}, want: [3]string{"8Gi", "56Gi", "8Gi"}, wantCPU: "2"},
		"nor of another image":                 {reports: []report{{Key{"big", "ami-2", "s"}, "a", "16", "56Gi", 0}}, want: [3]string{"8Gi", "64Gi", "8Gi"}, wantCPU: "2"},
		"nor with other settings":              {reports: []report{{Key{"big", "ami-1", "t"}, "a", "16", "56Gi", 0}}, want: [3]string{"8Gi", "64Gi", "8Gi"}, wantCPU: "2"},
		"an image that the cloud did not tell": {reports: []report{{Key{"small", "", "s"}, "a", "2", "7Gi", 0}}, want: [3]string{"8Gi", "64Gi", "8Gi"}, wantCPU: "2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			types := []*cloudprovider.InstanceType{
				machine("small", "ami-1", "s", "2", "8Gi"), machine("big", "ami-1", "s", "16", "64Gi"),
				machine("other", "ami-3", "s", "2", "8Gi"), machine("middle", "ami-1", "s", "4", "16Gi"),
			}
			check := func(b *Book) {
				sized, _ := b.Apply(types, now)
				for i, want := range tc.want {
					if got := sized[i].Allocatable.Memory(); got.Cmp(resource.MustParse(want)) != 0 {
						t.Errorf("%s has %s of memory, want %s", sized[i].Name, got, want)
					}
					if kept := sized[i].Capacity.Memory().Value() - sized[i].Allocatable.Memory().Value(); kept != 1<<30 {
						t.Errorf("capacity of %s is %d above allocatable, want 1Gi", sized[i].Name, kept)
					}
				}
				if got := sized[0].Allocatable.Cpu(); got.Cmp(resource.MustParse(tc.wantCPU)) != 0 {
					t.Errorf("small has %s CPU, want %s", got, tc.wantCPU)
				}
			}
			b := New()
			for _, r := range tc.reports {
				b.Observe(r.key, r.node, list(r.cpu, r.memory), now.Add(-r.ago))
			}
			check(b)
			next := New()
			for _, settings := range []string{"s", "t"} {
				if err := next.Merge(b.Encode(settings, now), now); err != nil {
					t.Fatal(err)
				}
			}
			check(next)
			if types[0].Allocatable.Memory().Cmp(resource.MustParse("8Gi")) != 0 {
				t.Error("the estimate was overwritten")
			}
		})
	}
}

func TestObserveSaysWhatIsNew(t *testing.T) {
	t.Parallel()
	b, key := New(), Key{"small", "ami-1", "s"}
	for i, step := range []struct {
		node, memory string
		after        time.Duration
		want, sized  bool
	}{
		{"a", "8Gi", 0, true, true},
		{"a", "8Gi", time.Hour, false, false},
		{"b", "9Gi", time.Hour, false, false},
		{"b", "7Gi", time.Hour, true, true},
		{"c", "8Gi", 8 * 24 * time.Hour, true, false}, // written again, so that it is not forgotten
	} {
		version := b.Version()
		if got := b.Observe(key, step.node, list("2", step.memory), now.Add(step.after)); got != step.want {
			t.Errorf("step %d: Observe() = %v, want %v", i, got, step.want)
		}
		if got := b.Version() != version; got != step.sized {
			t.Errorf("step %d: version changed: %v, want %v", i, got, step.sized)
		}
	}
}

// TestApplyLeavesAlone: what nothing is known of is handed on as it is.
func TestApplyLeavesAlone(t *testing.T) {
	t.Parallel()
	types := []*cloudprovider.InstanceType{machine("small", "ami-1", "s", "2", "8Gi"), machine("big", "ami-2", "s", "16", "64Gi")}
	b := New()
	b.Observe(Key{"gone", "ami-1", "s"}, "a", list("1", "1Gi"), now)
	sized, until := b.Apply(types, now)
	if &sized[0] != &types[0] || !until.IsZero() {
		t.Errorf("the slice was copied, or the answer ends at %s", until)
	}
	b.Observe(Key{"small", "ami-1", "s"}, "a", list("2", "7Gi"), now)
	sized, until = b.Apply(types, now)
	if sized[0] == types[0] || sized[1] != types[1] {
		t.Error("want only small to be another object")
	}
	if diff := cmp.Diff(now.Add(doubtFor), until); diff != "" {
		t.Errorf("the doubt ends (-want +got):\n%s", diff)
	}
}

func TestEncodeIsBounded(t *testing.T) {
	t.Parallel()
	b := New()
	for i := range 5000 {
		b.Observe(Key{fmt.Sprintf("type-%04d.24xlarge", i), "ami-0123456789abcdef0", "01234567"}, "ip-10-0-0-1.ec2.internal", list("95690m", "384000000Ki"), now.Add(time.Duration(i)*time.Second))
	}
	b.Observe(Key{"old", "ami-1", "01234567"}, "a", list("1", "1Gi"), now.Add(-keepFor))
	text := b.Encode("01234567", now.Add(2*time.Hour))
	if len(text) > 40<<10 {
		t.Errorf("%d bytes are too many for an annotation", len(text))
	}
	if n := strings.Count(text, `"type":`); n != maxEntries || !strings.Contains(text, "type-4999") || strings.Contains(text, `"old"`) {
		t.Errorf("%d entries, want the newest %d", n, maxEntries)
	}
	if got := b.Encode("unknown", now); got != "" {
		t.Errorf("Encode of unknown settings = %q", got)
	}
}

func TestMergeGarbage(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		text    string
		wantErr string
		known   int
	}{
		"empty":         {},
		"not JSON":      {text: "m5.large", wantErr: "reading measured allocatable: "},
		"not a list":    {text: `{"type":"m5.large"}`, wantErr: "reading measured allocatable: "},
		"no quantity":   {text: `[{"type":"a","image":"i","at":"2026-11-30T00:00:00Z","allocatable":{"cpu":"much"}}]`, wantErr: "reading measured allocatable: "},
		"too long":      {text: strings.Repeat(" ", maxText+1), wantErr: "are too many"},
		"negative":      {text: `[{"type":"a","image":"i","at":"2026-11-30T00:00:00Z","allocatable":{"cpu":"-1","memory":"1Gi"}}]`},
		"from tomorrow": {text: `[{"type":"a","image":"i","at":"2026-12-02T00:00:00Z","allocatable":{"cpu":"1","memory":"1Gi"}}]`},
		"nameless":      {text: `[{"image":"i","at":"2026-11-30T00:00:00Z","allocatable":{"cpu":"1","memory":"1Gi"}}]`},
		"good":          {text: `[{"type":"a","image":"i","at":"2026-11-30T00:00:00Z","allocatable":{"cpu":"1","memory":"1Gi"}}]`, known: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := New()
			err := b.Merge(tc.text, now)
			if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("Merge() = %v, want %q", err, tc.wantErr)
			}
			if len(b.entries) != tc.known {
				t.Errorf("%d entries, want %d", len(b.entries), tc.known)
			}
		})
	}
}

// FuzzMerge: no annotation makes it panic, and what is taken from it has at least a CPU and some memory, and is written
// again.
func FuzzMerge(f *testing.F) {
	for _, seed := range []string{
		``, `[]`, `null`, `[null]`, `{}`, `[{"type":"m5.large","image":"ami-1","settings":"s","node":"n","at":"2026-11-30T00:00:00Z","allocatable":{"cpu":"1930m","memory":"6903Mi","pods":"29"}}]`,
		`[{"type":"a","image":"i","at":"2026-11-30T00:00:00Z","allocatable":{"cpu":"9e999","memory":"1"}}]`, `[{"at":"0000-00-00T00:00:00Z"}]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b := New()
		if err := b.Merge(text, now); err != nil {
			return
		}
		types := make([]*cloudprovider.InstanceType, 0, len(b.entries))
		for key, e := range b.entries {
			if e.allocatable.Cpu().Sign() <= 0 || e.allocatable.Memory().Sign() <= 0 {
				t.Errorf("%v: %v", key, e.allocatable)
			}
			types = append(types, machine(key.InstanceType, key.Image, key.Settings, "2", "8Gi"), machine(key.InstanceType+"x", key.Image, key.Settings, "4", "16Gi"))
			if b.Encode(key.Settings, now) == "" {
				t.Errorf("%v is not written", key)
			}
		}
		b.Apply(types, now)
	})
}
