// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// serveHTTP returns a server on a real socket, its URL and a client of it that does not retry.
func serveHTTP(t *testing.T) (*Server, string, *ec2.Client) {
	t.Helper()
	settings := DefaultSettings()
	settings.WithholdFor = seconds(0.2)
	s := New(Options{Settings: &settings})
	web := httptest.NewServer(s)
	t.Cleanup(s.Close)
	t.Cleanup(web.Close)
	client := ec2.New(ec2.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(web.URL), Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("AKSOCKET", "secret", ""),
	})
	return s, web.URL, client
}

func TestOverASocket(t *testing.T) {
	t.Parallel()
	s, url, client := serveHTTP(t)
	makeTemplate(t, s, client, "template")
	for name, rule := range map[string]string{
		"withheld": `{"action":"CreateFleet","times":1,"withholdReply":true}`,
		"dropped":  `{"action":"CreateFleet","times":1,"dropRequest":true,"delay":"10ms"}`,
	} {
		var set struct{ ID string }
		control(t, http.MethodPost, url+"/_fake/faults", rule, &set)
		if _, err := client.CreateFleet(t.Context(), fleetInput(s, "template", 1, onDemand, onlyM5Large)); err == nil {
			t.Errorf("%s: got a reply", name)
		}
		var rules []Rule
		control(t, http.MethodGet, url+"/_fake/faults", "", &rules)
		if len(rules) != 1 || rules[0].ID != set.ID || rules[0].Fired != 1 {
			t.Errorf("%s: got rules %+v", name, rules)
		}
		control(t, http.MethodDelete, url+"/_fake/faults?id="+set.ID, "", nil)
	}
	out, err := client.CreateFleet(t.Context(), fleetInput(s, "template", 1, onDemand, onlyM5Large))
	if err != nil || len(out.Instances) != 1 {
		t.Fatalf("got %+v, error %v", out, err)
	}

	var instances []Instance
	control(t, http.MethodGet, url+"/_fake/instances", "", &instances)
	if len(instances) != 2 || instances[0].VCPUs != 2 || instances[0].PriceUSDPerHour != 0.096 || instances[0].Allocatable["cpu"] != "1930m" {
		t.Errorf("want the withheld instance and the answered one, got %+v", instances)
	}
	var templates []LaunchTemplate
	control(t, http.MethodGet, url+"/_fake/launch-templates", "", &templates)
	if len(templates) != 1 || templates[0].Name != "template" {
		t.Errorf("got templates %+v", templates)
	}
	var calls []Call
	control(t, http.MethodGet, url+"/_fake/calls?since=1", "", &calls)
	if len(calls) != 3 || calls[0].Seq != 2 || calls[0].AccessKey != "AKSOCKET" || calls[0].Params["LaunchTemplateConfigs.1.Overrides.1.InstanceType"] != "m5.large" {
		t.Errorf("got calls %+v", calls)
	}
	var prices map[string]float64
	control(t, http.MethodGet, url+"/_fake/prices", "", &prices)
	if prices["m5.large"] != 0.096 {
		t.Errorf("m5.large costs %v", prices["m5.large"])
	}
}

func TestControlSettings(t *testing.T) {
	t.Parallel()
	s, url, _ := serveHTTP(t)
	var got Settings
	control(t, http.MethodPost, url+"/_fake/settings", `{"describeLag":"10s","allocatableDeviation":{"memory":"-0.02"}}`, &got)
	if got.DescribeLag.Duration != 10*time.Second || got.BootDelay.Duration != time.Second || s.Settings().AllocatableDeviation["memory"] != "-0.02" {
		t.Errorf("a patch must leave the rest alone: %+v", got)
	}
	for _, bad := range []string{`{"describeLag":"soon"}`, `{"unknown":1}`, `{"allocatableDeviation":{"memory":"much"}}`, `[]`} {
		if status := control(t, http.MethodPost, url+"/_fake/settings", bad, nil); status != http.StatusBadRequest {
			t.Errorf("%s: got status %d, want 400", bad, status)
		}
	}
	if s.Settings().DescribeLag.Duration != 10*time.Second {
		t.Error("a refused patch changed something")
	}
	for path, want := range map[string]int{"healthz": 200, "nothing": 404} {
		if status := control(t, http.MethodGet, url+"/_fake/"+path, "", nil); status != want {
			t.Errorf("%s: got status %d, want %d", path, status, want)
		}
	}
	if status := control(t, http.MethodPost, url+"/_fake/faults", `{"actoin":"CreateFleet"}`, nil); status != http.StatusBadRequest {
		t.Errorf("a misspelt rule: got status %d, want 400", status)
	}
	if status := control(t, http.MethodPut, url+"/_fake/faults", ``, nil); status != http.StatusMethodNotAllowed {
		t.Errorf("PUT: got status %d, want 405", status)
	}
}

func TestMachinesDifferFromTheArithmetic(t *testing.T) {
	t.Parallel()
	settings := DefaultSettings()
	settings.AllocatableDeviation = map[string]string{"memory": "-0.5"}
	s, client := start(t, Options{Settings: &settings})
	makeTemplate(t, s, client, "template")
	if _, err := client.CreateFleet(t.Context(), fleetInput(s, "template", 1, onDemand, []types.InstanceType{"m5.large"})); err != nil {
		t.Fatal(err)
	}
	if got := s.Instances()[0].Allocatable["memory"]; got != "3534336Ki" {
		t.Errorf("allocatable memory %s, want half of 6903Mi", got)
	}
}

// control calls the control API and decodes the reply into out, if it is not nil.
func control(t *testing.T, method, url, body string, out any) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}()
	if out != nil {
		if err := json.NewDecoder(response.Body).Decode(out); err != nil {
			t.Fatalf("%s %s: %v", method, url, err)
		}
	}
	return response.StatusCode
}
