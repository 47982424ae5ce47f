// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	reply := func(id, state string, tags ...types.Tag) *ec2.DescribeInstancesOutput {
		return &ec2.DescribeInstancesOutput{Reservations: []types.Reservation{{Instances: []types.Instance{{
			InstanceId: &id, State: &types.InstanceState{Name: types.InstanceStateName(state)}, LaunchTime: aws.Time(time.Now()), Tags: tags,
		}}}}}
	}
	code := func(code string) error { return &smithy.GenericAPIError{Code: code} }
	cases := map[string]struct {
		fake, moto       any
		fakeErr, motoErr error
		want             []string
	}{
		"other ids, other times":  {fake: reply("i-0123456789abcdef0", "running"), moto: reply("i-abcdef0123456789a", "running")},
		"not an id":               {fake: reply("i-0", "running"), moto: reply("i-abcdef0123456789a", "running"), want: []string{`Reservations[].Instances[].InstanceId is "i-0", moto has "i-<id>"`}},
		"another state":           {fake: reply("", "pending"), moto: reply("", "running"), want: []string{`Reservations[].Instances[].State.Name is "pending", moto has "running"`}},
		"moto tells more":         {fake: reply("", "running"), moto: reply("", "running", tag("a", "b"))},
		"the fake tells more":     {fake: reply("", "running", tag("a", "b")), moto: reply("", "running"), want: []string{`Reservations[].Instances[].Tags[a].Key is "a", moto has no such field`, `Reservations[].Instances[].Tags[a].Value is "b", moto has no such field`}},
		"tags in another order":   {fake: reply("", "running", tag("a", "b"), tag("c", "d")), moto: reply("", "running", tag("c", "d"), tag("a", "b"))},
		"the same error":          {fakeErr: code("NoSuchEntity"), motoErr: code("NoSuchEntity")},
		"another error":           {fakeErr: code("NoSuchEntity"), motoErr: code("NoSuchThing"), want: []string{`error is "NoSuchEntity", moto has "NoSuchThing"`}},
		"an error here only":      {fakeErr: code("NoSuchEntity"), moto: reply("", "running"), want: []string{`error is "NoSuchEntity", moto has "none"`}},
		"an error that isn't AWS": {fakeErr: errors.New("broken"), motoErr: code("X"), want: []string{`error is "broken", moto has "X"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			differences, _ := Compare(tc.fake, tc.moto, tc.fakeErr, tc.motoErr)
			var got []string
			for _, d := range differences {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}
