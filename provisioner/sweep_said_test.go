// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"errors"
	"testing"

	"k8s.io/klog/v2"
)

// A failing sweep is said once per change; request ids are none.
func TestSweepFailuresAreSaidOnce(t *testing.T) {
	t.Parallel()
	said := ""
	for i, tc := range []struct {
		err     error
		changes bool
	}{
		{nil, false},
		{errors.New("RequestID: 1, throttled"), true},
		{errors.New("RequestID: 2, throttled"), false},
		{errors.New("RequestID: 3, denied"), true},
		{nil, true},
		{errors.New("RequestID: 4, denied"), true},
	} {
		now := sayOnce(klog.Background(), said, tc.err)
		if (now != said) != tc.changes {
			t.Errorf("step %d: said %q, then %q", i, said, now)
		}
		said = now
	}
}
