// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// errNotSent says that a call ended while it waited for its turn: AWS has not seen it.
var errNotSent = errors.New("not sent: too many AWS calls are waiting")

// urgency orders calls that wait for their turn; lower ones go first.
type urgency int

const (
	urgentFleet    urgency = iota // a launch whose templates are there
	urgentTemplate                // a launch
	urgentEnd                     // ends what costs money
	urgentTag
	urgentRest // describes, clean-up
)

// rate is a token bucket: size calls at once, refill calls per second.
type rate struct{ size, refill float64 }

// The request rates that EC2 documents by kind of action, per account and region; every action has a bucket of its own.
// They are the ceiling. Other services have none that matters here.
var (
	readRate  = rate{100, 20}
	writeRate = rate{50, 5}
	rates     = map[string]rate{"TerminateInstances": {100, 5}, "CreateTags": {100, 10}, "RunInstances": {5, 2}}
	otherRate = rate{20, 10}
)

const (
	// headroom is the share of the documented rate that is used: others in the account call as well, and clocks differ.
	headroom = 0.95
	// slowest is the least share of its rate that a throttled bucket keeps.
	slowest = 0.05
	// recovery is the share of its rate that a bucket regains per second without a throttled call.
	recovery = 0.02
	// holdBack is how long calls that can wait do wait after a launch was throttled.
	holdBack = 2 * time.Second
)

// bucket is one of EC2's token buckets, as far as it can be known from here.
type bucket struct {
	rate   rate
	share  float64 // of the rate, learned
	tokens float64
	filled time.Time
	queue  []*turn // by urgency, then arrival
	timer  *time.Timer
}

// turn is a call that waits.
type turn struct {
	urgency urgency
	ready   chan struct{}
}

// limiter is what all AWS calls of a Provider go through, each of the SDK's own retries too.
type limiter struct {
	mu        sync.Mutex
	buckets   map[string]*bucket
	launches  int       // calls of launches that wait, in any bucket
	heldUntil time.Time // until then calls that can wait do

	leading func() error // asked before a call that changes something is sent
}

func newLimiter(leading func() error) *limiter {
	return &limiter{buckets: map[string]*bucket{}, leading: leading}
}

// bucketOf is the rate of a call's bucket and how urgent it is.
func bucketOf(service, operation string) (rate, urgency) {
	if service != "EC2" {
		return otherRate, urgentRest
	}
	switch operation {
	case "CreateFleet":
		return writeRate, urgentFleet
	case "CreateLaunchTemplate":
		return writeRate, urgentTemplate
	case "TerminateInstances":
		return rates[operation], urgentEnd
	case "CreateTags":
		return rates[operation], urgentTag
	}
	if limit, ok := rates[operation]; ok {
		return limit, urgentRest
	}
	if strings.HasPrefix(operation, "Describe") {
		return readRate, urgentRest
	}
	return writeRate, urgentRest
}

// wait returns when the call may be sent. The error is errNotSent if ctx ended before.
func (l *limiter) wait(ctx context.Context, service, operation string) error {
	limit, urgent := bucketOf(service, operation)
	name := service + "/" + operation
	l.mu.Lock()
	b := l.buckets[name]
	if b == nil {
		b = &bucket{rate: limit, share: 1, tokens: limit.size * headroom, filled: time.Now()}
		l.buckets[name] = b
	}
	t := &turn{urgency: urgent, ready: make(chan struct{})}
	i, _ := slices.BinarySearchFunc(b.queue, urgent+1, func(q *turn, u urgency) int { return int(q.urgency) - int(u) })
	b.queue = slices.Insert(b.queue, i, t)
	if urgent <= urgentTemplate {
		l.launches++
	}
	l.serve(b)
	l.mu.Unlock()
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i = slices.Index(b.queue, t)
	if i < 0 {
		return nil // its turn came as well
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	l.left(t)
	return errors.Join(errNotSent, context.Cause(ctx))
}

func (l *limiter) left(t *turn) {
	if t.urgency <= urgentTemplate {
		l.launches--
	}
}

// serve lets through what may go now and comes back when more may; mu is held.
func (l *limiter) serve(b *bucket) {
	now := time.Now()
	elapsed := max(0, now.Sub(b.filled).Seconds())
	b.share = min(1, b.share+elapsed*recovery)
	perSecond := b.rate.refill * b.share * headroom
	b.tokens = min(b.rate.size*headroom, b.tokens+elapsed*perSecond)
	b.filled = now
	for len(b.queue) > 0 && b.tokens >= 1 && !l.held(b.queue[0], now) {
		b.tokens--
		l.left(b.queue[0])
		close(b.queue[0].ready)
		b.queue = b.queue[1:]
	}
	if len(b.queue) == 0 {
		return
	}
	pause := time.Duration((1 - b.tokens) / perSecond * float64(time.Second))
	if l.held(b.queue[0], now) {
		pause = max(pause, l.heldUntil.Sub(now))
	}
	pause = max(pause, time.Millisecond)
	if b.timer != nil {
		b.timer.Reset(pause)
		return
	}
	b.timer = time.AfterFunc(pause, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.serve(b)
	})
}

// held says that a call has to wait although its bucket has room: EC2 has throttled a launch just now, and whatever
// else is sent keeps it waiting.
func (l *limiter) held(t *turn, now time.Time) bool {
	return t.urgency == urgentRest && l.launches > 0 && now.Before(l.heldUntil)
}

// throttled is told that AWS refused a call for its rate: the bucket is emptier than it seemed.
func (l *limiter) throttled(service, operation string) {
	_, urgent := bucketOf(service, operation)
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[service+"/"+operation]
	if b == nil {
		return
	}
	now := time.Now()
	if urgent <= urgentTemplate {
		l.heldUntil = now.Add(holdBack)
	}
	b.share = max(slowest, b.share/2)
	b.tokens = min(b.tokens, 0)
}

// attempts is told, by way of a context, whether a call may have been acted on though its answer is lost. Templates are
// made side by side.
type attempts struct{ doubtful atomic.Bool }

type attemptsKey struct{}

// attemptTimeout bounds one attempt of a call, from when it is sent.
func attemptTimeout(service, operation string) time.Duration {
	if service == "EC2" && operation == "CreateFleet" {
		return fleetTimeout
	}
	return sendTimeout
}

// limited has every call of a client go through the limiter: after the SDK's retries, before the signature, whose time
// must be that of sending. It gives every attempt its deadline, and does not begin one that cannot end in time.
func (l *limiter) limited(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("JITLimiter", func(
		ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
	) (middleware.FinalizeOutput, middleware.Metadata, error) {
		service, operation := awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
		timeout := attemptTimeout(service, operation)
		if err := l.waitBefore(ctx, service, operation, timeout); err != nil {
			return middleware.FinalizeOutput{}, middleware.Metadata{}, err
		}
		// Not sooner: the wait, or a process that was stopped, may have outlasted the lease.
		if err := l.mayChange(operation); err != nil {
			return middleware.FinalizeOutput{}, middleware.Metadata{}, fmt.Errorf("not sending %s: %w", operation, err)
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		out, metadata, err := next.HandleFinalize(ctx, in)
		if hasCode(err, throttleCodes) {
			l.throttled(service, operation)
		} else if made, ok := ctx.Value(attemptsKey{}).(*attempts); ok && err != nil && moodOf(errorCode(err), "").meaning == meansTransient {
			made.doubtful.Store(true)
		}
		return out, metadata, err
	}), "Retry", middleware.After)
}

// mayChange says why a call must not be sent; reads always may.
func (l *limiter) mayChange(operation string) error {
	for _, read := range []string{"Describe", "Get", "List", "Decode", "Assume"} {
		if strings.HasPrefix(operation, read) {
			return nil
		}
	}
	if l.leading == nil {
		return nil
	}
	return l.leading()
}

// waitBefore waits for a turn as long as half of an attempt's time is left after it.
func (l *limiter) waitBefore(ctx context.Context, service, operation string, timeout time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-timeout/2))
		defer cancel()
	}
	return l.wait(ctx, service, operation)
}
