// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// invented are two types that AWS does not sell.
const invented = `{"type":"zz9-flex.mega","arch":"arm64","vcpu":3,"memoryMiB":10000,"onDemandUSD":0.3,"enis":6,"ipv4PerEni":7,"hypervisor":"nitro","cpuManufacturer":"aws","clockMHz":2750,"nvmeGB":75,"branchEnis":5,"networkCards":2,"defaultCardEnis":3,"flex":true}

{"type":"zz9.metal-7xl","arch":"amd64","vcpu":28,"memoryMiB":65536,"enis":4,"ipv4PerEni":15,"hypervisor":"","bareMetal":true,"cpuManufacturer":"intel","clockMHz":0,"networkCards":1,"defaultCardEnis":4}
`

// kubectlJIT runs the command in a folder with the files.
func kubectlJIT(t *testing.T, files map[string]string, args ...string) (code int, out, errs string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr strings.Builder
	code = run(t.Context(), world{strings.NewReader(files["-"]), &stdout, &stderr, awsConfig, clusterClient}, args)
	return code, stdout.String(), stderr.String()
}

func TestTypesJSON(t *testing.T) {
	code, out, errs := kubectlJIT(t, map[string]string{"c.jsonl": invented}, "types", "--catalog", "c.jsonl", "--zones", "eu-west-1a,eu-west-1c", "-o", "json")
	if want := "note: no --nodeclass: AL2023 with default settings\n"; code != 0 || errs != want {
		t.Fatalf("exit code %d, stderr %q, want 0 and %q", code, errs, want)
	}
	var got []typeView
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := []typeView{{
		Name: "zz9-flex.mega",
		Labels: map[string][]string{
			"node.kubernetes.io/instance-type": {"zz9-flex.mega"}, "kubernetes.io/arch": {"arm64"}, "kubernetes.io/os": {"linux"},
			"topology.kubernetes.io/region": {"eu-west-1"}, "topology.kubernetes.io/zone": {"eu-west-1a", "eu-west-1c"},
			"karpenter.sh/capacity-type":                                 {"on-demand"},
			"karpenter.k8s.aws/instance-category":                        {"zz"},
			"karpenter.k8s.aws/instance-generation":                      {"9"},
			"karpenter.k8s.aws/instance-family":                          {"zz9-flex"},
			"karpenter.k8s.aws/instance-size":                            {"mega"},
			"karpenter.k8s.aws/instance-capability-flex":                 {"true"},
			"karpenter.k8s.aws/instance-cpu":                             {"3"},
			"karpenter.k8s.aws/instance-memory":                          {"10000"},
			"karpenter.k8s.aws/instance-cpu-manufacturer":                {"aws"},
			"karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz":   {"2750"},
			"karpenter.k8s.aws/instance-hypervisor":                      {"nitro"},
			"karpenter.k8s.aws/instance-local-nvme":                      {"75"},
			"karpenter.k8s.aws/instance-encryption-in-transit-supported": {"false"},
			"karpenter.k8s.aws/instance-tenancy":                         {"default"},
		},
		// 10000 − 64 of firmware, of which 7.5 % are 745.2. 3 interfaces × 6 addresses + 2.
		Capacity: map[string]string{"cpu": "3", "memory": "9190Mi", "ephemeral-storage": "20Gi", "pods": "20", "vpc.amazonaws.com/pod-eni": "5"},
		// 60 + 10 + 5; 11 × 20 + 255 + 100; 1Gi + 2Gi.
		Overhead:    map[string]string{"cpu": "75m", "memory": "575Mi", "ephemeral-storage": "3Gi"},
		Allocatable: map[string]string{"cpu": "2925m", "memory": "8615Mi", "ephemeral-storage": "17Gi", "pods": "20", "vpc.amazonaws.com/pod-eni": "5"},
		Offerings: []offeringView{
			{Zone: "eu-west-1a", CapacityType: "on-demand", USDPerHour: 0.3, Available: true}, {Zone: "eu-west-1c", CapacityType: "on-demand", USDPerHour: 0.3, Available: true},
		},
	}}
	if diff := cmp.Diff(want, got[:1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got) != 2 || len(got[1].Offerings) != 0 || !strings.Contains(out, `"offerings":[]`) {
		t.Errorf("the type without a price: %+v, want no offering", got[1:])
	}
	if _, ok := got[1].Labels["karpenter.k8s.aws/instance-hypervisor"]; ok {
		t.Error("bare metal has a hypervisor")
	}
}

func TestTypesTable(t *testing.T) {
	code, out, errs := kubectlJIT(t, map[string]string{"-": invented}, "types", "--catalog", "-")
	want := `# no --nodeclass: AL2023 with default settings
NAME           ARCH   CPU     MEMORY   STORAGE  PODS  ON-DEMAND  SPOT  ZONES                             OTHER
zz9-flex.mega  arm64  2925m   8615Mi   17Gi     20    0.3        -     us-east-1a,us-east-1b,us-east-1c  vpc.amazonaws.com/pod-eni=5
zz9.metal-7xl  amd64  27860m  59627Mi  17Gi     58    -          -     -                                 
`
	if diff := cmp.Diff(want, out); diff != "" || code != 0 || errs != "" {
		t.Errorf("exit code %d, stderr %q (-want +got):\n%s", code, errs, diff)
	}
}

func TestTypesOfNodeClass(t *testing.T) {
	const head = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec:\n"
	small := map[string]string{"cpu": "2925m", "memory": "8615Mi", "ephemeral-storage": "17Gi", "pods": "20", "vpc.amazonaws.com/pod-eni": "5"}
	with := func(change map[string]string) map[string]string {
		out := maps.Clone(small)
		maps.Copy(out, change)
		return out
	}
	cases := map[string]struct {
		text string
		want map[string]string // allocatable of the first type
	}{
		"nothing said": {head, small},
		"JSON, behind another document": {
			"kind: NodePool\n---\n---\n" + `{"apiVersion":"karpenter.k8s.aws/v1","kind":"EC2NodeClass","metadata":{"name":"a"},"spec":{"kubelet":{"maxPods":4}}}`,
			with(map[string]string{"pods": "4"}), // AL2023 reserves for all addresses all the same
		},
		"anchors":              {head + "  kubelet: {systemReserved: &r {cpu: 25m}, kubeReserved: *r}\n", with(map[string]string{"cpu": "2950m"})},
		"podsPerCore":          {head + "  kubelet: {podsPerCore: 2}\n", with(map[string]string{"pods": "6"})},
		"instance store":       {head + "  instanceStorePolicy: RAID0\n", with(map[string]string{"ephemeral-storage": "66426258176"})},
		"reserved":             {head + "  kubelet: {kubeReserved: {memory: 1Gi}, systemReserved: {memory: 1000Mi, cpu: 500m}}\n", with(map[string]string{"memory": "7066Mi", "cpu": "2425m"})},
		"eviction by quantity": {head + "  kubelet: {evictionHard: {memory.available: 200Mi, nodefs.available: 1Gi}}\n", with(map[string]string{"memory": "8515Mi", "ephemeral-storage": "18Gi"})},
		"eviction by share":    {head + "  kubelet: {evictionHard: {memory.available: 10%, nodefs.available: 100%}}\n", with(map[string]string{"memory": "7796Mi", "ephemeral-storage": "19Gi"})},
		"soft eviction":        {head + "  kubelet: {evictionSoft: {memory.available: 50%}, evictionSoftGracePeriod: {memory.available: 1m}}\n", small},
		"disk":                 {head + "  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 100Gi}}]\n", with(map[string]string{"ephemeral-storage": "89Gi"})},
		"another disk":         {head + "  blockDeviceMappings: [{deviceName: /dev/xvdz, ebs: {volumeSize: 100Gi}}]\n", small},
		"root disk":            {head + "  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 10Gi}}, {deviceName: /dev/xvdz, rootVolume: true, ebs: {volumeSize: 100Gi}}]\n", with(map[string]string{"ephemeral-storage": "89Gi"})},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			code, out, errs := kubectlJIT(t, map[string]string{"c.jsonl": invented, "class.yaml": c.text}, "types", "--catalog", "c.jsonl", "--nodeclass", "class.yaml", "-o", "json")
			if code != 0 || errs != "" {
				t.Fatalf("exit code %d, stderr %q", code, errs)
			}
			var got []typeView
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got[0].Allocatable); diff != "" {
				t.Errorf("allocatable (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTypesBadInput(t *testing.T) {
	const head = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec:\n"
	row := strings.TrimSuffix(strings.SplitAfter(invented, "\n")[0], "\n")
	class := []string{"types", "--catalog", "c.jsonl", "--nodeclass", "class.yaml"}
	catalogue := []string{"types", "--catalog", "c.jsonl"}
	cases := map[string]struct {
		files map[string]string
		args  []string
		want  []string // beginnings of lines on stderr
	}{
		"no such command":              {nil, []string{"frob"}, []string{`error: unknown command "frob"`}},
		"no such flag":                 {nil, []string{"types", "--frob"}, []string{"error: unknown flag: --frob"}},
		"argument":                     {nil, []string{"types", "x"}, []string{"error: types takes no argument"}},
		"output":                       {nil, []string{"types", "-o", "xml"}, []string{`error: --output "xml": is not table or json`}},
		"zone":                         {nil, []string{"types", "--zones", "a,,b"}, []string{`error: --zones: "" is not`}},
		"zone twice":                   {nil, []string{"types", "--zones", "a,a"}, []string{"error: --zones: a is there twice"}},
		"two standard inputs":          {nil, []string{"types", "--catalog", "-", "--nodeclass", "-"}, []string{"error: --catalog and --nodeclass cannot both"}},
		"no catalogue":                 {nil, catalogue, []string{"error: open c.jsonl: no such file"}},
		"empty catalogue":              {map[string]string{"c.jsonl": "\n"}, catalogue, []string{"error: c.jsonl: line 1: no instance type"}},
		"catalogue cut off":            {map[string]string{"c.jsonl": invented + `{"type":`}, catalogue, []string{"error: c.jsonl: line 4: not a JSON object"}},
		"catalogue of YAML":            {map[string]string{"c.jsonl": "type: a.b"}, catalogue, []string{"error: c.jsonl: line 1: not a JSON object"}},
		"field missing":                {map[string]string{"c.jsonl": "\n" + strings.Replace(row, `"vcpu"`, `"vcpus"`, 1)}, catalogue, []string{"error: c.jsonl: line 2: vcpu: is required"}},
		"field of another kind":        {map[string]string{"c.jsonl": strings.Replace(row, "10000", `"10000"`, 1)}, catalogue, []string{"error: c.jsonl: line 1: memoryMiB: string where int64 is wanted"}},
		"negative":                     {map[string]string{"c.jsonl": strings.Replace(row, `"enis":6`, `"enis":-6`, 1)}, catalogue, []string{"error: c.jsonl: line 1: enis: -6 is not between"}},
		"absurd":                       {map[string]string{"c.jsonl": strings.Replace(row, "10000", "9223372036854775807", 1)}, catalogue, []string{"error: c.jsonl: line 1: memoryMiB: 9223372036854775807 is not between"}},
		"architecture":                 {map[string]string{"c.jsonl": strings.Replace(row, "arm64", "x86_64", 1)}, catalogue, []string{`error: c.jsonl: line 1: arch: "x86_64" is not amd64 or arm64`}},
		"more on the card than at all": {map[string]string{"c.jsonl": strings.Replace(row, `"defaultCardEnis":3`, `"defaultCardEnis":7`, 1)}, catalogue, []string{"error: c.jsonl: line 1: defaultCardEnis: 7"}},
		"twice":                        {map[string]string{"c.jsonl": invented + row}, catalogue, []string{"error: c.jsonl: line 4: type: zz9-flex.mega is there twice"}},
		"no class":                     {map[string]string{"c.jsonl": row}, class, []string{"error: open class.yaml: no such file"}},
		"no class in the file":         {map[string]string{"c.jsonl": row, "class.yaml": "kind: NodePool"}, class, []string{"error: class.yaml: no document of kind EC2NodeClass"}},
		"two classes":                  {map[string]string{"c.jsonl": row, "class.yaml": head + "---\n" + head}, class, []string{"error: class.yaml: documents 1 and 2 are both"}},
		"no YAML":                      {map[string]string{"c.jsonl": row, "class.yaml": "a: b\n---\na: [\n"}, class, []string{"error: class.yaml: document 2, line "}},
		"older version":                {map[string]string{"c.jsonl": row, "class.yaml": strings.Replace(head, "/v1\n", "/v1beta1\n", 1)}, class, []string{`error: class.yaml: document 1, line 1: apiVersion: "karpenter.k8s.aws/v1beta1" is not`}},
		"key twice":                    {map[string]string{"c.jsonl": row, "class.yaml": head + "  role: a\n  role: b\n"}, class, []string{"error: class.yaml: document 1, line 6: mapping key"}},
		"unknown field":                {map[string]string{"c.jsonl": row, "class.yaml": head + "  kubelet:\n    maxPod: 3\n"}, class, []string{"error: class.yaml: document 1, line 6: spec.kubelet.maxPod: unknown field"}},
		"several faults": {
			map[string]string{"c.jsonl": row, "class.yaml": "---\n---\n" + head + "  kubelet:\n    maxPods: many\n    evictionHard:\n      nodefs.available: 10%\n      memory.available: 500%\n"},
			class,
			[]string{
				"error: class.yaml: document 2, line 8: spec.kubelet.maxPods: ",
				"error: class.yaml: document 2, line 11: spec.kubelet.evictionHard.memory.available: ",
			},
		},
		"a disk of no size": {
			map[string]string{"c.jsonl": row, "class.yaml": head + "  blockDeviceMappings:\n  - deviceName: /dev/xvda\n    ebs:\n      volumeSize: huge\n"},
			class,
			[]string{"error: class.yaml: document 1, line 8: spec.blockDeviceMappings[0].ebs.volumeSize: "},
		},
		"two root disks": {
			map[string]string{"c.jsonl": row, "class.yaml": head + "  blockDeviceMappings: [{rootVolume: true}, {rootVolume: true}]\n"},
			class,
			[]string{"error: class.yaml: document 1, line 5: spec.blockDeviceMappings: "},
		},
		"what the provisioner refuses": {
			map[string]string{"c.jsonl": row, "class.yaml": head + "  kubelet:\n    kubeReserved:\n      memory: 5E\n"},
			class,
			[]string{"error: class.yaml: document 1, line 7: spec.kubelet.kubeReserved[memory]: "},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
			code, out, errs := kubectlJIT(t, c.files, c.args...)
			if code != exitBadInput || out != "" {
				t.Errorf("exit code %d, stdout %q, want %d and none", code, out, exitBadInput)
			}
			lines := strings.Split(strings.TrimSuffix(errs, "\n"), "\n")
			if len(lines) != len(c.want) {
				t.Fatalf("stderr:\n%swant %d lines", errs, len(c.want))
			}
			for i, want := range c.want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("stderr %q, want %q…", lines[i], want)
				}
			}
		})
	}
}

func TestTypesUnknownFieldOfCatalogue(t *testing.T) {
	text := strings.ReplaceAll(invented, `"vcpu"`, `"colour":"red","vcpu"`)
	code, _, errs := kubectlJIT(t, map[string]string{"c.jsonl": text}, "types", "--catalog", "c.jsonl", "-o", "json")
	if want := "c.jsonl: line 1: colour: not known, ignored\n"; code != 0 || strings.Count(errs, "colour") != 1 || !strings.HasSuffix(errs, want) {
		t.Errorf("exit code %d, stderr %q, want 0 and …%q once", code, errs, want)
	}
}
