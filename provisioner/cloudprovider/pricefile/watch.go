// SPDX-License-Identifier: Apache-2.0

package pricefile

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

// Watch looks at the file every so often until ctx ends, and calls changed with what has become of f: another File, or
// the error that is there now, once. After an error the last good file stays in force, which is the caller's. A file in a
// volume of a ConfigMap is replaced by renaming a link above it, so the content is compared, not its time.
func Watch(ctx context.Context, path string, f *File, every time.Duration, changed func(*File, error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last []byte
	if f != nil {
		last = f.text
	}
	fault := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		text, err := read(path)
		if err == nil && fault == "" && bytes.Equal(text, last) {
			continue
		}
		var now *File
		if err == nil {
			if now, err = Parse(text); err != nil {
				err = fmt.Errorf("price file %s: %w", path, err)
			}
		}
		if err != nil {
			if err.Error() != fault {
				fault = err.Error()
				changed(nil, err)
			}
			continue
		}
		last, fault = text, ""
		changed(now, nil)
	}
}
