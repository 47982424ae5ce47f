// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Call is one AWS API call in the fake's log.
type Call struct {
	Seq       int64          `json:"seq"`
	Time      Stamp          `json:"time"` // arrival at the endpoint
	AccessKey string         `json:"accessKey"`
	Service   string         `json:"service"`
	Action    string         `json:"action"`
	Params    map[string]any `json:"params"`
	Status    int            `json:"status"` // HTTP; 0 while unanswered
	Code      string         `json:"code"`   // AWS error code, empty on success
	DryRun    bool           `json:"dryRun"`
	// DurationMS is from arrival to the reply.
	DurationMS int64 `json:"durationMs"`
	// PoolErrors is what a CreateFleet reply says of pools that gave too little.
	PoolErrors []PoolError `json:"poolErrors"`
}

// PoolError is EC2's refusal of one pool.
type PoolError struct {
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	SubnetID     string `json:"subnetId"`
	Code         string `json:"code"`
}

// Rate is the token bucket of an action: its size and how many tokens it gets back a second.
type Rate struct {
	Burst     float64 `json:"burst"`
	PerSecond float64 `json:"perSecond"`
}

// QueueCounts says where the messages of a queue are.
type QueueCounts struct {
	Visible  int `json:"visible"`
	InFlight int `json:"inFlight"` // received, and neither deleted nor visible again
	Deleted  int `json:"deleted"`
}

// param is a request parameter by its flattened key; empty if it was not sent.
func (c *Call) param(key string) string {
	text, _ := c.Params[key].(string)
	return text
}

// launches reports whether the call asked for instances.
func (c *Call) launches() bool { return c.Action == "CreateFleet" && !c.DryRun }

func (c *Call) clientToken() string {
	return c.param("ClientToken")
}

// readOnlyActions are the prefixes of AWS actions that change nothing.
var readOnlyActions = []string{"Assume", "Describe", "Get", "Head", "List", "Receive"}

// mutating reports whether the call was meant to change something.
func (c *Call) mutating() bool {
	if c.DryRun {
		return false
	}
	for _, prefix := range readOnlyActions {
		if strings.HasPrefix(c.Action, prefix) {
			return false
		}
	}
	return true
}

// Instance is one instance of the fake, terminated ones included.
type Instance struct {
	ID              string            `json:"id"`
	InstanceType    string            `json:"instanceType"`
	Zone            string            `json:"zone"`
	CapacityType    string            `json:"capacityType"`
	State           string            `json:"state"`
	PriceUSDPerHour float64           `json:"priceUSDPerHour"`
	LaunchedAt      Stamp             `json:"launchedAt"`
	RunningAt       Stamp             `json:"runningAt"`
	TerminatedAt    Stamp             `json:"terminatedAt"`
	Tags            map[string]string `json:"tags"`
	ClientToken     string            `json:"clientToken"`
	NodeName        string            `json:"nodeName"`
	VCPUs           float64           `json:"vcpus"`
}

// Terminated reports whether nothing of the instance is left to pay for.
func (i *Instance) Terminated() bool { return i.State == "terminated" }

// aliveAt reports whether the instance existed at t.
func (i *Instance) aliveAt(t time.Time) bool {
	if i.LaunchedAt.After(t) {
		return false
	}
	end, ended := i.end()
	return !ended || end.After(t)
}

// end is when the instance was gone; false if it is not.
func (i *Instance) end() (time.Time, bool) {
	if !i.TerminatedAt.IsZero() {
		return i.TerminatedAt.Time, true
	}
	return time.Time{}, false
}

// LaunchTemplate is one launch template that exists in the fake.
type LaunchTemplate struct {
	ID   string            `json:"id"`
	Name string            `json:"name"`
	Tags map[string]string `json:"tags"`
}

// Stamp is a time of the fake; JSON "" and null are the zero time.
type Stamp struct{ time.Time }

// UnmarshalJSON reads RFC 3339, "" and null.
func (s *Stamp) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("reading a time: %w", err)
	}
	s.Time = time.Time{}
	if text == "" {
		return nil
	}
	parsed, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return fmt.Errorf("reading a time: %w", err)
	}
	s.Time = parsed
	return nil
}
