// SPDX-License-Identifier: Apache-2.0

package allocatable

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

const (
	// maxEntries bounds the text to about 25 KB; an object's annotations together may have 256.
	maxEntries = 128
	// keepFor is Karpenter's: what no machine has confirmed for so long is forgotten.
	keepFor = 60 * 24 * time.Hour
	// maxText is what Merge reads at most.
	maxText = 256 << 10
)

// record is one entry as it is written.
type record struct {
	InstanceType string          `json:"type"`
	Image        string          `json:"image"`
	Settings     string          `json:"settings"`
	Node         string          `json:"node"`
	At           time.Time       `json:"at"`
	Allocatable  v1.ResourceList `json:"allocatable"`
}

// Encode writes what is known of machines with these settings, the newest entries first to be kept, in an order that
// does not change. "" if nothing is known.
func (b *Book) Encode(settings string, now time.Time) string {
	var records []record
	for key, e := range b.entries {
		if key.Settings == settings && now.Sub(e.at) < keepFor {
			records = append(records, record{key.InstanceType, key.Image, key.Settings, e.node, e.at.UTC().Truncate(time.Second), e.allocatable})
		}
	}
	byName := func(a, b record) int {
		return cmp.Or(cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.Image, b.Image))
	}
	slices.SortFunc(records, func(a, b record) int { return cmp.Or(b.At.Compare(a.At), byName(a, b)) })
	records = records[:min(len(records), maxEntries)]
	slices.SortFunc(records, byName)
	if len(records) == 0 {
		return ""
	}
	text, err := json.Marshal(records)
	if err != nil {
		return "" // quantities and strings always encode
	}
	return string(text)
}

// Merge adds what Encode wrote, in another process perhaps; of two measurements of one key the least counts. What
// cannot be true is left out; the error is for a text that is not Encode's at all.
func (b *Book) Merge(text string, now time.Time) error {
	if text == "" {
		return nil
	}
	if len(text) > maxText {
		return fmt.Errorf("reading measured allocatable: %d bytes are too many", len(text))
	}
	var records []record
	if err := json.Unmarshal([]byte(text), &records); err != nil {
		return fmt.Errorf("reading measured allocatable: %w", err)
	}
	for _, r := range records[:min(len(records), maxEntries)] {
		if r.InstanceType == "" || r.At.After(now) || now.Sub(r.At) >= keepFor {
			continue
		}
		b.Observe(Key{r.InstanceType, r.Image, r.Settings}, r.Node, r.Allocatable, r.At)
	}
	return nil
}
