// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// User data that no machine could boot with: the class is not ready, and says where and why. Repaired, it is.
func TestRefusedUserData(t *testing.T) {
	t.Parallel()
	part := func(headers, body string) string {
		return "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n--B\n" + headers + "\n\n" + body + "\n--B--\n"
	}
	cases := map[string]struct {
		alias, userData string
		reason          string
		message         string // a part of it
	}{
		"too long":                 {"al2023", "#!/bin/sh\n" + strings.Repeat("#", userDataLimit), "UserDataSizeLimitExceeded", "spec.userData: user data is limited to 16384 bytes, with what the node needs to join it is 16"},
		"too long with our part":   {"al2023", "#!/bin/sh\n" + strings.Repeat("#", userDataLimit-100), "UserDataSizeLimitExceeded", "16384"},
		"long settings":            {"bottlerocket", "[settings.motd]\nx = \"" + strings.Repeat("#", userDataLimit) + "\"\n", "UserDataSizeLimitExceeded", "16384"},
		"no boundary":              {"al2023", "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\n--B\n\nx\n--B--\n", "UserDataInvalid", "spec.userData: MIME archive without a boundary"},
		"no end":                   {"al2023", strings.TrimSuffix(part("Content-Type: text/plain", "x"), "--B--\n"), "UserDataInvalid", "MIME archive without its end --B--"},
		"no content type":          {"al2023", "MIME-Version: 1.0\n\nx\n", "UserDataInvalid", "MIME header Content-Type"},
		"no header":                {"al2023", "Content-Type: text/plain\nnonsense\n\nx\n", "UserDataInvalid", "MIME header"},
		"bad part header":          {"al2023", part("nonsense", "x"), "UserDataInvalid", "MIME part 2"},
		"bad part type":            {"al2023", part("Content-Type: /", "x"), "UserDataInvalid", "MIME part 2: Content-Type"},
		"another kind in a part":   {"al2023", part("Content-Type: application/node.eks.aws", "apiVersion: v1\nkind: Pod"), "UserDataInvalid", "MIME part 2: a YAML document must be apiVersion node.eks.aws/v1alpha1, kind NodeConfig, not \"v1\", \"Pod\""},
		"a part that is no YAML":   {"al2023", part("Content-Type: application/node.eks.aws", "\ta: ]"), "UserDataInvalid", "MIME part 2: NodeConfig"},
		"a part that is no base64": {"al2023", part("Content-Type: application/node.eks.aws\nContent-Transfer-Encoding: base64", "%"), "UserDataInvalid", "base64"},
		"flags that are no list":   {"al2023", "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags: --v=2\n", "UserDataInvalid", "NodeConfig"},
		"YAML of something else":   {"al2023", "packages: [jq]\n", "UserDataInvalid", "kind NodeConfig"},
		"no TOML":                  {"bottlerocket", "#!/bin/sh\necho hi\n", "UserDataInvalid", "spec.userData: TOML"},
		"a key twice":              {"bottlerocket", "[settings]\n[settings]\n", "UserDataInvalid", "TOML"},
		"no table":                 {"bottlerocket", "settings = 1\n", "UserDataInvalid", "settings is not a table"},
		"kubernetes is no table":   {"bottlerocket", "[settings]\nkubernetes = [1]\n", "UserDataInvalid", "kubernetes is not a table"},
		"labels are no table":      {"bottlerocket", "[settings.kubernetes]\nnode-labels = \"a=b\"\n", "UserDataInvalid", "node-labels is not a table"},
		"commands are no table":    {"bottlerocket", "[settings]\nbootstrap-commands = []\n", "UserDataInvalid", "bootstrap-commands is not a table"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t)
			class := demoClass()
			class.Spec.AMISelectorTerms[0].Alias = tc.alias + "@latest"
			class.Spec.UserData = &tc.userData
			status, err := c.Resolve(t.Context(), class)
			if err != nil {
				t.Fatal(err)
			}
			class.Status = *status
			got := class.StatusConditions().Get(awsv1.ConditionTypeValidationSucceeded)
			if got.Status != metav1.ConditionFalse || got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) || !strings.HasPrefix(got.Message, "spec.userData: ") {
				t.Errorf("%s %s %q, want False %s …%s…", got.Status, got.Reason, got.Message, tc.reason, tc.message)
			}
			if class.StatusConditions().Root().Status != metav1.ConditionFalse {
				t.Error("the class is ready")
			}
			class.Generation++
			class.Spec.UserData = nil
			c.ready(t, class)
		})
	}
}

// A custom image gets its user data as it is, and no machine is too clever about it.
func TestCustomImageUserData(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "MIME-Version: 1.0\n\n", "settings = 1\n", "\x00\xff"} {
		if got := string(rendered(t, func(b *bootConfig) { b.family, b.custom = awsv1.AMIFamilyCustom, text })); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	c := newCloud(t)
	class := demoClass()
	class.Spec.AMIFamily, class.Spec.UserData = aws.String(awsv1.AMIFamilyCustom), aws.String(strings.Repeat("x", userDataLimit+1))
	status, err := c.Resolve(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	class.Status = *status
	if got := class.StatusConditions().Get(awsv1.ConditionTypeValidationSucceeded); got.Reason != "UserDataSizeLimitExceeded" {
		t.Errorf("%+v", got)
	}
}
