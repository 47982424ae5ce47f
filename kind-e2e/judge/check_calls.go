// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// unknownParameter: no call says what the fake gives no meaning to; AWS might, and then nobody has seen it.
type unknownParameter struct {
	noStep

	in *input
}

func newUnknownParameter(in *input) invariant { return &unknownParameter{in: in} }

func (u *unknownParameter) finish(_ *world, report reporter) {
	for i := range u.in.calls {
		call := &u.in.calls[i]
		switch call.Code {
		case "UnknownParameter", "InvalidAction", "UnknownOperationException":
			report(call.Time.Time, call.Action, "%s: the fake does not serve %s/%s with %s", call.Code, call.Service, call.Action,
				strings.Join(slices.Sorted(maps.Keys(call.Params)), ", "))
		}
	}
}

// tokenLaunchesOnce: over all time a client token launches no more instances than its first call asked for, and is not
// used for another request.
type tokenLaunchesOnce struct {
	noStep

	in *input
}

func newTokenLaunchesOnce(in *input) invariant { return &tokenLaunchesOnce{in: in} }

func (t *tokenLaunchesOnce) finish(_ *world, report reporter) {
	asked, first := map[string]int{}, map[string]*Call{}
	for i := range t.in.calls {
		call := &t.in.calls[i]
		token := call.clientToken()
		if call.Code == "IdempotentParameterMismatch" {
			report(call.Time.Time, token, "the token of %s was used before, for another request%s", call.Action, difference(first[token], call))
		} else if first[token] == nil {
			first[token] = call
		}
		if !call.launches() || asked[token] > 0 {
			continue
		}
		n, err := strconv.Atoi(call.param("TargetCapacitySpecification.TotalTargetCapacity"))
		if err != nil {
			n = 1
		}
		asked[token] = n
	}
	launched := map[string]int{}
	for _, instance := range t.in.instancesByLaunch() {
		token := instance.ClientToken
		if launched[token]++; asked[token] > 0 && launched[token] == asked[token]+1 {
			report(instance.LaunchedAt.Time, token, "launched %s as well, and asked for %d", instance.ID, asked[token])
		}
	}
}

// difference names the parameter of two requests that differs, the first by name, and how many do.
func difference(was, is *Call) string {
	if was == nil {
		return ""
	}
	keys := maps.Clone(was.Params)
	maps.Copy(keys, is.Params)
	maps.DeleteFunc(keys, func(k string, _ any) bool { return was.param(k) == is.param(k) })
	if len(keys) == 0 {
		return ""
	}
	k := slices.Min(slices.Collect(maps.Keys(keys)))
	return fmt.Sprintf(": %s was %q, is %q (%d differ)", k, was.param(k), is.param(k), len(keys))
}

// requestRate: no EC2 action is called more often than its documented token bucket allows.
type requestRate struct {
	noStep

	in *input
}

func newRequestRate(in *input) invariant { return &requestRate{in: in} }

func (r *requestRate) finish(_ *world, report reporter) {
	type level struct {
		tokens float64
		filled time.Time
		dry    bool
	}
	levels := map[string]*level{}
	for i := range r.in.calls {
		call := &r.in.calls[i]
		rate, limited := r.in.rates[call.Action]
		if call.Service != "ec2" || !limited {
			continue
		}
		l := levels[call.Action]
		if l == nil {
			l = &level{tokens: rate.Burst, filled: call.Time.Time}
			levels[call.Action] = l
		}
		l.tokens = min(rate.Burst, l.tokens+call.Time.Sub(l.filled).Seconds()*rate.PerSecond)
		l.filled = call.Time.Time
		if l.tokens < 1 && !l.dry {
			l.dry = true
			report(call.Time.Time, call.Action, "called faster than its bucket of %g allows, which refills with %g/s", rate.Burst, rate.PerSecond)
		}
		l.tokens = max(0, l.tokens-1)
	}
}

// queueMessages: every message that was received is deleted, or visible again, in the end.
type queueMessages struct {
	noStep

	in *input
}

func newQueueMessages(in *input) invariant { return &queueMessages{in: in} }

func (q *queueMessages) finish(_ *world, report reporter) {
	for _, name := range slices.Sorted(maps.Keys(q.in.queues)) {
		if n := q.in.queues[name].InFlight; n > 0 {
			report(q.in.end, name, "%d messages were received and are neither deleted nor visible", n)
		}
	}
}
