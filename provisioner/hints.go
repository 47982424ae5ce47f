// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// hintWriters is the number of status patches in flight: these are for people (NOMINATED NODE) and for other
// autoscalers, which leave nominated pods alone; nothing of ours depends on them.
const hintWriters = 10

// hints writes status.nominatedNodeName of reserved pods, best effort, beside everything else.
type hints struct {
	mu    sync.Mutex
	order []hint
	said  map[types.UID]string
	wake  chan struct{}
}

type hint struct {
	uid             types.UID
	namespace, name string
	claim           string
}

func (h *hints) init() {
	h.said = map[types.UID]string{}
	h.wake = make(chan struct{}, 1)
}

// nominate queues a patch unless the pod says so already.
func (h *hints) nominate(pod *v1.Pod, claim string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.said[pod.UID] == claim {
		return
	}
	h.said[pod.UID] = claim // also what a former leader wrote: it is ours to take back
	if pod.Status.NominatedNodeName != claim {
		h.queue(hint{pod.UID, pod.Namespace, pod.Name, claim})
	}
}

// clear takes the name of a claim back that is given up; a later nomination overtakes it.
func (h *hints) clear(pod lifecycle.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.said[pod.UID] == "" {
		return
	}
	delete(h.said, pod.UID)
	h.queue(hint{pod.UID, pod.Namespace, pod.Name, ""})
}

func (h *hints) queue(x hint) {
	h.order = append(h.order, x)
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// forget drops what is remembered of a pod.
func (h *hints) forget(uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.said, uid)
}

func (h *hints) next() (hint, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.order) == 0 {
		return hint{}, false
	}
	x := h.order[0]
	h.order = h.order[1:]
	return x, true
}

func (h *hints) run(ctx context.Context, p *Provisioner) {
	slots := make(chan struct{}, hintWriters)
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		}
		for x, ok := h.next(); ok; x, ok = h.next() {
			select {
			case <-ctx.Done():
				return
			case slots <- struct{}{}:
			}
			go func() {
				defer func() { <-slots }()
				h.write(ctx, p, x)
			}()
		}
	}
}

// write patches one pod, unless its place is another one meanwhile.
func (h *hints) write(ctx context.Context, p *Provisioner, x hint) {
	p.mu.Lock()
	claim, _ := p.state.Reservation(x.uid)
	p.mu.Unlock()
	may := p.Leading
	if x.claim == "" {
		may = p.leads // what we wrote is taken back even when a Karpenter has come
	}
	if claim != x.claim || may() != nil {
		return
	}
	var name any = x.claim
	if x.claim == "" {
		if now := p.stored(x.namespace, x.name, x.uid); now == nil || p.preempting(now) {
			return // preemption has nominated it on a node meanwhile
		}
		name = nil
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": x.uid},
		"status":   map[string]any{"nominatedNodeName": name},
	})
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := p.Client.CoreV1().Pods(x.namespace).Patch(ctx, x.name, types.MergePatchType, body, metav1.PatchOptions{}, "status"); err != nil {
		h.forget(x.uid)
	}
}
