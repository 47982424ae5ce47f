// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the actions that stories give into their files")

// TestStories plays testdata/*.txt: a line that starts with ">" is an event (see story), the lines under it are the
// actions that must come of it; "#" lines are for the reader. The invariants are checked after every event.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := playStory(t, string(data))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(data), got); diff != "" {
				t.Errorf("the story went otherwise (-want +got):\n%s", diff)
			}
		})
	}
}

// playStory returns the text with the actions that really came.
func playStory(t *testing.T, text string) string {
	st := newStory()
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, ">"):
			out.WriteString(line + "\n")
			for _, a := range st.play(t, strings.Fields(line[1:])) {
				out.WriteString("  " + a + "\n")
			}
			if err := st.state.Check(); err != nil {
				t.Errorf("after %q: %v", line, err)
			}
		case line == "" || strings.HasPrefix(line, "#"):
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}
