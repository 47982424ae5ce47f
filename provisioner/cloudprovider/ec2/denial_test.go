// SPDX-License-Identifier: Apache-2.0

package ec2

import "testing"

func TestDenial(t *testing.T) {
	t.Parallel()
	const user = "User: arn:aws:sts::111122223333:assumed-role/jit/1 is not authorized to perform: "
	const instances = "arn:aws:ec2:us-east-1:111122223333:instance/*"
	cases := map[string]struct{ message, decoded, want string }{
		"plain": {
			"You are not authorized to perform this operation. " + user + "ec2:RunInstances on resource: " + instances + " because no identity-based policy allows the ec2:RunInstances action. " + encodedMark + " abc", "",
			"not authorized to call ec2:CreateFleet: missing permission ec2:RunInstances on " + instances + ": no policy of the role allows it",
		},
		"boundary": {
			user + "ec2:CreateTags on resource: x because no permissions boundary allows the ec2:CreateTags action", "",
			"not authorized to call ec2:CreateFleet: missing permission ec2:CreateTags on x: a permissions boundary does not allow it",
		},
		"organization": {
			user + "ec2:CreateFleet with an explicit deny in a service control policy", "",
			"not authorized to call ec2:CreateFleet: missing permission ec2:CreateFleet: a service control policy of the organization denies it",
		},
		"encoded": {
			"You are not authorized to perform this operation. " + encodedMark + " abc",
			`{"allowed":false,"explicitDeny":false,"matchedStatements":{"items":[]},"context":{"principal":{"arn":"arn:x"},"action":"iam:PassRole","resource":"arn:aws:iam::111122223333:role/node"}}`,
			"not authorized to call ec2:CreateFleet: missing permission iam:PassRole on arn:aws:iam::111122223333:role/node: no policy of the role allows it",
		},
		"explicit, encoded": {
			encodedMark + " abc", `{"explicitDeny":true,"context":{"action":"ec2:RunInstances"}}`,
			"not authorized to call ec2:CreateFleet: missing permission ec2:RunInstances: a policy denies it explicitly",
		},
		"encoded, not decoded": {
			"You are not authorized to perform this operation. " + encodedMark + " abc", "",
			"not authorized to call ec2:CreateFleet: You are not authorized to perform this operation. (grant sts:DecodeAuthorizationMessage to see which permission is missing)",
		},
		"says nothing":  {"No.", "", "not authorized to call ec2:CreateFleet: No."},
		"decoded trash": {"No. " + encodedMark + " abc", "[1", "not authorized to call ec2:CreateFleet: No. (grant sts:DecodeAuthorizationMessage to see which permission is missing)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := parseDenial(c.message).decoded(c.decoded).sentence("ec2:CreateFleet", c.message); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
