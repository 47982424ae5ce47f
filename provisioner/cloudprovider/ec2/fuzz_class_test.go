// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	pelletier "github.com/pelletier/go-toml"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/userdata"
)

// FuzzBottlerocketUserData: whatever the class's settings are, either they are refused, or the rendered ones are TOML that
// keeps what is not ours, twice the same, with which a machine joins.
func FuzzBottlerocketUserData(f *testing.F) {
	for _, seed := range []string{
		"", "[settings]\n", "settings.kubernetes.max-pods = 7\n", "[settings.kubernetes.node-labels]\n\"a.b/c\" = \"d\"\n", "[[settings.x]]\na = [1, 'b', {c = 1979-05-27T07:32:00Z}]\n",
		"[settings.kubernetes]\nnode-taints = {a = [\":NoSchedule\"]}\ncluster-dns-ip = [\"1.2.3.4\"]\n", "[settings.bootstrap-commands.x]\nmode = \"off\"\n", "settings = 1", "a = nan\n[settings.y]\nz = -inf\n",
		"[settings.kubernetes]\nnode-labels = 1\n", "[settings]\nbootstrap-commands = []\n", "\xff", "[settings.kubernetes.\"\"]\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		boot := demoBoot()
		boot.family, boot.custom, boot.raid0 = awsv1.AMIFamilyBottlerocket, text, true
		first, err := boot.userData()
		if err != nil {
			return
		}
		if second, err := boot.userData(); err != nil || first != second {
			t.Errorf("not the same twice: %v", err)
		}
		data, err := base64.StdEncoding.DecodeString(first)
		if err != nil {
			t.Fatal(err)
		}
		again, err := customSettings(string(data))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, data)
		}
		kubernetes, _ := again["settings"].(table)["kubernetes"].(table)
		if kubernetes["cluster-name"] != "demo" || kubernetes["max-pods"] != int64(29) {
			t.Errorf("ours is lost in\n%s", data)
		}
		before, err := customSettings(text)
		if err != nil {
			t.Fatal(err)
		}
		for key := range before["settings"].(table) {
			if _, has := again["settings"].(table)[key]; !has {
				t.Errorf("%q is lost in\n%s", key, data)
			}
		}
	})
}

// FuzzArchive: whatever the class's user data is, either it is refused, or a machine reads our NodeConfig as the last.
func FuzzArchive(f *testing.F) {
	for _, seed := range []string{
		"", "#!/bin/sh\n--//\n", "a: b", "Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: application/node.eks.aws\n\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n--B--\n",
		"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"//\"\r\n\r\n--//\r\nContent-Type: text/plain\r\n\r\nx\r\n--//--\r\n", "content-type: text/plain\n\nx", "#cloud-config\na: 1\n",
		"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {featureGates: {X: true}}\n", "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n--B\n\n--B--\n", "kind: &a [*a]\n", "\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		boot := demoBoot()
		boot.custom = text
		encoded, err := boot.userData()
		if err != nil {
			if !strings.HasPrefix(err.Error(), userDataPath+": ") {
				t.Errorf("the error does not name the field: %v", err)
			}
			return
		}
		data, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := customParts(string(data))
		if err != nil || len(parts) == 0 {
			t.Fatalf("the archive cannot be read again: %v\n%s", err, data)
		}
		ours, err := boot.nodeConfig()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimSuffix(string(ours), "\n"), parts[len(parts)-1].body); diff != "" {
			t.Errorf("the last part (-want +got):\n%s", diff)
		}
	})
}

// FuzzSelectors: no class's terms make a query for everything that there is, nor a panic.
func FuzzSelectors(f *testing.F) {
	for _, seed := range []string{
		`{"amiSelectorTerms":[{"alias":"al2023@latest"}]}`, `{"amiSelectorTerms":[{"alias":"@"}],"amiFamily":"Bottlerocket"}`, `{"amiSelectorTerms":[{"owner":"self"}]}`,
		`{"amiSelectorTerms":[{"name":"*","owner":"1"},{"id":"ami-1"},{"tags":{"a":"*","b":"c"}}]}`, `{"subnetSelectorTerms":[{},{"id":"subnet-1","tags":{"":""}}]}`,
		`{"securityGroupSelectorTerms":[{"name":"a","tags":{"b":"*"}},{}]}`, `{"amiFamily":"Windows2022"}`, `{}`, `{"amiSelectorTerms":[{"alias":"bottlerocket@v1.50.0/../x"}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var spec awsv1.EC2NodeClassSpec
		if json.Unmarshal([]byte(text), &spec) != nil {
			return
		}
		family, wrong := familyOf(&spec)
		if (family == "") == (wrong == nil) {
			t.Errorf("family %q, %v", family, wrong)
		}
		_ = missingSubnets(&spec) + missingGroups(&spec) + missingImages(&spec, &clusterFacts{version: "1.37"})
		for _, term := range spec.SubnetSelectorTerms {
			if len(tagFilters(term.Tags)) != len(term.Tags) {
				t.Errorf("a tag is lost of %v", term.Tags)
			}
		}
		for _, term := range spec.AMISelectorTerms {
			if of, err := parseAlias(term.Alias); err == nil {
				for _, image := range families[of.family].images("1.37", of.version) {
					if !strings.HasPrefix(image.path, "/aws/service/") || strings.Contains(image.path, "..") || strings.Count(image.path, "/") > 10 {
						t.Errorf("alias %q leads to %q", term.Alias, image.path)
					}
				}
			}
			if query := termQuery(term); (term.Name != "" || len(term.Tags) > 0) && len(query.filters) == 0 {
				t.Errorf("term %+v selects all images", term)
			}
		}
	})
}

// The other readers of Bottlerocket's settings: what we write is TOML to them, too.
func TestBottlerocketIsTOMLToOthers(t *testing.T) {
	t.Parallel()
	for _, custom := range []string{
		"[[settings.x]]\na = [1, 2]\nb = 1979-05-27T07:32:00Z\n", "[settings.\"a b\".\"c.d\"]\ne = '''x\ny'''\n", "settings.a = {b = [{c = 1.5}, {c = 2.5}]}\n",
	} {
		data := rendered(t, func(b *bootConfig) { b.family, b.custom = awsv1.AMIFamilyBottlerocket, custom })
		if _, err := pelletier.LoadBytes(data); err != nil {
			t.Errorf("%v in\n%s", err, data)
		}
		if _, err := userdata.Parse(data); err != nil {
			t.Errorf("%v in\n%s", err, data)
		}
	}
}
