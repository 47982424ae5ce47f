// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		args             []string
		wantOut, wantErr string
	}{
		"no command":                {wantErr: "usage"},
		"an unknown command":        {args: []string{"restart"}, wantErr: "usage"},
		"an unknown flag":           {args: []string{"-nmae", "x", "up"}, wantErr: "nmae"},
		"down without an up before": {args: []string{"-name", "never-started", "down"}, wantOut: "does not run"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := run(t.Context(), tc.args, &out)
			if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("got error %v, want %q", err, tc.wantErr)
			}
			if !strings.Contains(out.String(), tc.wantOut) {
				t.Errorf("printed %q, want %q", out.String(), tc.wantOut)
			}
		})
	}
}
