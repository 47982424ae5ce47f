// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

const deregistered = "deregistered"

// Image is what can be changed of an image, or said of one of the account's own.
type Image struct {
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	Architecture string            `json:"architecture"` // x86_64 or arm64
	Kubernetes   string            `json:"kubernetes"`   // minor version of its kubelet
	State        string            `json:"state"`        // available if empty; pending, failed, disabled, deregistered
	Owner        string            `json:"owner"`        // account id
	CreatedAt    time.Time         `json:"createdAt"`
	DeprecatedAt time.Time         `json:"deprecatedAt"`
	Tags         map[string]string `json:"tags"`
}

// SetImage changes the image of that id or name where the fields are not empty, or else registers one of the account's
// own: x86_64, of the cluster's version, created now, if it does not say otherwise. It returns its id.
func (s *Server) SetImage(change Image) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.images, func(i image) bool { return i.id == change.ID || (change.ID == "" && i.name == change.Name) })
	if i < 0 {
		id := orDefault(change.ID, s.addImage(image{
			name: change.Name, arch: "x86_64", kubernetes: s.opts.ClusterVersion, osImage: "Amazon Linux 2023", rootDevice: "/dev/xvda", created: time.Now(),
		}))
		i = len(s.images) - 1
		s.images[i].id, s.images[i].owner = id, s.opts.AccountID
	}
	changed := &s.images[i]
	changed.arch, changed.kubernetes = orDefault(change.Architecture, changed.arch), orDefault(change.Kubernetes, changed.kubernetes)
	changed.state, changed.owner = orDefault(change.State, changed.state), orDefault(change.Owner, changed.owner)
	if !change.CreatedAt.IsZero() {
		changed.created = change.CreatedAt
	}
	if !change.DeprecatedAt.IsZero() {
		changed.deprecated = change.DeprecatedAt
	}
	if change.Tags != nil {
		changed.tags = change.Tags
	}
	id := changed.id
	slices.SortFunc(s.images, func(a, b image) int { return cmp.Or(strings.Compare(a.id, b.id), strings.Compare(a.name, b.name)) })
	return id
}
