// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// implied are actions that AWS checks because of what a call carries.
var implied = []string{"ec2:RunInstances", "iam:PassRole", "iam:TagInstanceProfile"}

func TestPermissionsAreTheCalls(t *testing.T) {
	t.Parallel()
	want := slices.Clone(implied)
	for service, api := range map[string]reflect.Type{
		"ec2": reflect.TypeFor[EC2API](), "eks": reflect.TypeFor[EKSAPI](), "iam": reflect.TypeFor[IAMAPI](),
		"ssm": reflect.TypeFor[SSMAPI](), "pricing": reflect.TypeFor[PricingAPI](), "sts": reflect.TypeFor[STSAPI](),
	} {
		for method := range api.Methods() {
			want = append(want, service+":"+method.Name)
		}
	}
	var got []string
	for _, permission := range Permissions {
		if permission.Why == "" {
			t.Errorf("%s has no reason", permission.Action)
		}
		got = append(got, permission.Action)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions (-calls +table):\n%s", diff)
	}
}
