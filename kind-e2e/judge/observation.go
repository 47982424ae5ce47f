// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Op says what happened to the object of an Observation.
type Op string

// The operations, as a watch names them.
const (
	Added    Op = "ADDED"
	Modified Op = "MODIFIED"
	Deleted  Op = "DELETED"
)

// Observation is one change of one API object. Exactly one object is set; it is
// not changed after it was observed.
type Observation struct {
	// Time is when the judge saw it.
	Time time.Time
	Op   Op
	// Listed means that the object came from a list and not from a watch: it is
	// older than Time, and what it went through before was not seen.
	Listed bool

	Pod   *corev1.Pod
	Node  *corev1.Node
	Claim *Claim
	Event *corev1.Event
	PVC   *corev1.PersistentVolumeClaim

	// revision orders observations of all kinds; see State.Observe.
	revision uint64
}

// object is the metadata of whichever object is set; nil if none is.
func (o *Observation) object() metav1.Object {
	switch {
	case o.Pod != nil:
		return o.Pod
	case o.Node != nil:
		return o.Node
	case o.Claim != nil:
		return o.Claim
	case o.Event != nil:
		return o.Event
	case o.PVC != nil:
		return o.PVC
	default:
		return nil
	}
}

// parseRevision reads a resourceVersion; 0 means that it carries none.
func parseRevision(resourceVersion string) uint64 {
	revision, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return revision
}
