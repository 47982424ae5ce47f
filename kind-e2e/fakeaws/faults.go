// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rule is a fault: which calls, pools and machines it concerns, when, and what it does. The empty matcher fields match
// everything; a call that speaks of several types, zones… is concerned if one of them matches.
//
// Service "node" with the actions Boot, Join and Ready matches what machines do: an error code, or dropRequest, means
// that they never do it.
type Rule struct {
	ID string `json:"id"`

	Service       string `json:"service"`
	Action        string `json:"action"`
	AccessKey     string `json:"accessKey"`
	InstanceType  string `json:"instanceType"`
	Zone          string `json:"zone"`
	CapacityType  string `json:"capacityType"`
	SubnetID      string `json:"subnetId"`
	ReservationID string `json:"reservationId"`
	InstanceID    string `json:"instanceId"`

	// Tags must all be on one resource that the call or the pool makes, or names; values may have * and ?.
	Tags map[string]string `json:"tags"`
	// Params are flattened keys of the request; values may have * and ?.
	Params map[string]string `json:"params"`

	After       int             `json:"after"`       // so many matches pass first
	Times       int             `json:"times"`       // how often it fires; 0 is without end
	Probability float64         `json:"probability"` // 0 means 1
	StartsAfter metav1.Duration `json:"startsAfter"` // since the rule was added
	EndsAfter   metav1.Duration `json:"endsAfter"`   // likewise; 0 is never

	Code    string `json:"code"` // empty: no error
	Message string `json:"message"`
	Status  int    `json:"status"`  // HTTP status; 0 is the usual one of the code
	PerPool bool   `json:"perPool"` // fail the matching pools of a CreateFleet, not the call
	// PoolLimit, of a rule per pool, lets each pool give so many instances before it fails.
	PoolLimit int `json:"poolLimit"`

	Delay         metav1.Duration `json:"delay"`         // wait before acting
	Jitter        metav1.Duration `json:"jitter"`        // wait up to so much longer, at random
	WithholdReply bool            `json:"withholdReply"` // act, hang, reset the connection
	DropRequest   bool            `json:"dropRequest"`   // reset the connection before acting
	FailAfter     bool            `json:"failAfter"`     // act, then answer with the code

	DryRunSucceeds  bool `json:"dryRunSucceeds"`  // a valid dry run is answered as a call that was made
	DeleteTemplates bool `json:"deleteTemplates"` // the launch templates that the call names vanish first
	OmitInstances   bool `json:"omitInstances"`   // the matching instances are missing in the reply
	EmptyReply      bool `json:"emptyReply"`      // lists in the reply are empty
	CorruptPrices   bool `json:"corruptPrices"`   // prices in the reply are no numbers

	Machine MachineFault `json:"machine"`

	// Fired is how often the rule was applied.
	Fired int `json:"fired"`

	added time.Time
	seen  int // subjects of the window that matched
}

// MachineFault is what goes wrong with a machine, by the action that it happens at.
type MachineFault struct {
	Die           bool              `json:"die"`           // Boot: EC2 terminates it by itself, as when a disk's key is refused
	WithoutLabels bool              `json:"withoutLabels"` // Join: without the labels of the user data
	WithoutTaints bool              `json:"withoutTaints"` // Join: without the taints of the user data
	ProviderID    string            `json:"providerId"`    // Join: with this instead of its own
	Allocatable   map[string]string `json:"allocatable"`   // Join: resource name to share, "-0.2" is 20 % less than the type has
}

var errRule = errors.New("invalid fault")

// validate refuses rules that would silently not do what they say.
func (r *Rule) validate() error {
	switch {
	case r.PoolLimit != 0 && !r.PerPool:
		return fmt.Errorf("%w: poolLimit without perPool", errRule)
	case r.FailAfter && r.Code == "":
		return fmt.Errorf("%w: failAfter without code", errRule)
	case r.Probability < 0 || r.Probability > 1:
		return fmt.Errorf("%w: probability %v is not between 0 and 1", errRule, r.Probability)
	}
	_, err := shares(r.Machine.Allocatable)
	return err
}

// SetFault adds a rule and returns its id. Rules apply in the order in which they were added. It panics on a rule that
// makes no sense, as only code calls it; the control API refuses it.
func (s *Server) SetFault(rule Rule) string {
	id, err := s.addFault(rule)
	if err != nil {
		panic(err)
	}
	return id
}

func (s *Server) addFault(rule Rule) (string, error) {
	if err := rule.validate(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faultSeq++
	rule.ID, rule.Fired, rule.seen, rule.added = strconv.Itoa(s.faultSeq), 0, 0, time.Now()
	s.faults = append(s.faults, &rule)
	return rule.ID, nil
}

// Faults returns all rules with how often each has fired.
func (s *Server) Faults() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	rules := []Rule{}
	for _, rule := range s.faults {
		rules = append(rules, *rule)
	}
	return rules
}

// DeleteFault removes one rule, or all of them if id is empty.
func (s *Server) DeleteFault(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = slices.DeleteFunc(s.faults, func(rule *Rule) bool { return id == "" || rule.ID == id })
}

// due says whether a matching rule applies now, and counts the match.
func (r *Rule) due(now time.Time, random *rand.Rand) bool {
	since := now.Sub(r.added)
	if since < r.StartsAfter.Duration || (r.EndsAfter.Duration > 0 && since >= r.EndsAfter.Duration) {
		return false
	}
	if r.Times > 0 && r.Fired >= r.Times {
		return false
	}
	if r.seen++; r.seen <= r.After {
		return false
	}
	return r.Probability <= 0 || r.Probability >= 1 || random.Float64() < r.Probability
}

// effect is the sum of the rules that fired. The first error wins.
type effect struct {
	delay     time.Duration
	err       *apiError
	poolLimit int
	withhold  bool
	drop      bool
	failAfter bool

	dryRunSucceeds, deleteTemplates, empty, corrupt bool

	omit    []*Rule // whose instances are missing
	machine MachineFault
}

// fireLocked counts and adds up the rules that concern the subject.
func (s *Server) fireLocked(of subject) effect {
	var sum effect
	now := time.Now()
	for _, rule := range s.faults {
		if rule.PerPool == of.perPool && rule.concerns(of) && rule.due(now, s.random) {
			rule.Fired++
			sum.add(rule, s.random)
		}
	}
	return sum
}

func (e *effect) add(rule *Rule, random *rand.Rand) {
	e.delay += rule.Delay.Duration
	if rule.Jitter.Duration > 0 {
		e.delay += time.Duration(random.Int64N(int64(rule.Jitter.Duration)))
	}
	e.withhold = e.withhold || rule.WithholdReply
	e.drop = e.drop || rule.DropRequest
	e.dryRunSucceeds = e.dryRunSucceeds || rule.DryRunSucceeds
	e.deleteTemplates = e.deleteTemplates || rule.DeleteTemplates
	e.empty = e.empty || rule.EmptyReply
	e.corrupt = e.corrupt || rule.CorruptPrices
	e.machine.add(&rule.Machine)
	if rule.OmitInstances {
		e.omit = append(e.omit, rule)
	}
	if rule.Code != "" && e.err == nil {
		e.err = &apiError{Code: rule.Code, Message: rule.Message, Status: rule.Status}
		e.failAfter, e.poolLimit = rule.FailAfter, rule.PoolLimit
		if rule.Message == "" {
			e.err.Message = defaultMessage(rule)
		}
	}
}

func (m *MachineFault) add(other *MachineFault) {
	m.Die = m.Die || other.Die
	m.WithoutLabels = m.WithoutLabels || other.WithoutLabels
	m.WithoutTaints = m.WithoutTaints || other.WithoutTaints
	if other.ProviderID != "" {
		m.ProviderID = other.ProviderID
	}
	if len(other.Allocatable) > 0 {
		m.Allocatable = other.Allocatable
	}
}

func (s *Server) fire(of subject) effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fireLocked(of)
}
