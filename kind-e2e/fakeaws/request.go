// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// protocol is how a service encodes requests and replies.
type protocol int

const (
	ec2Query protocol = iota
	awsQuery
	awsJSON
	restJSON
)

// request is one decoded AWS call.
type request struct {
	service   string // ec2, iam, sts, ssm, pricing, sqs, eks, arc-zonal-shift
	action    string
	protocol  protocol
	accessKey string
	params    map[string]string // flattened keys; for queries without Action and Version
	form      form              // query protocols
	body      []byte            // JSON protocols
	http      *http.Request
	arrival   time.Time
	seq       int         // number in the call log
	effect    effect      // of the faults that fired
	refusals  []PoolError // of a CreateFleet's pools
}

const maxBody = 4 << 20

var credentialPattern = regexp.MustCompile(`Credential=([^/,\s]+)/`)

// jsonServices maps the prefix of X-Amz-Target to the service.
var jsonServices = map[string]string{
	"AmazonSSM":           "ssm",
	"AWSPriceListService": "pricing",
	"AmazonSQS":           "sqs",
}

// queryServices maps the API version in a form to the service.
var queryServices = map[string]string{
	"2016-11-15": "ec2",
	"2010-05-08": "iam",
	"2011-06-15": "sts",
}

func parseRequest(r *http.Request) (*request, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("reading the request body: %w", err)
	}
	req := &request{http: r, body: body, arrival: time.Now(), params: map[string]string{}}
	if match := credentialPattern.FindStringSubmatch(r.Header.Get("Authorization")); match != nil {
		req.accessKey = match[1]
	}
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		return req, req.parseJSON(target)
	}
	if r.Method == http.MethodGet {
		return req, req.parsePath(r.URL)
	}
	return req, req.parseForm()
}

func (r *request) parseJSON(target string) error {
	prefix, action, _ := strings.Cut(target, ".")
	r.protocol, r.action, r.service = awsJSON, action, jsonServices[prefix]
	if r.service == "" {
		return fmt.Errorf("unknown target %q", target)
	}
	var value any
	if err := json.Unmarshal(r.body, &value); err != nil {
		return fmt.Errorf("reading the JSON body of %s: %w", target, err)
	}
	flatten(r.params, "", value)
	return nil
}

func (r *request) parsePath(u *url.URL) error {
	r.protocol = restJSON
	segments := strings.SplitN(strings.TrimPrefix(u.EscapedPath(), "/"), "/", 2)
	if len(segments) == 2 {
		name, err := url.PathUnescape(segments[1])
		if err != nil {
			return fmt.Errorf("reading path %q: %w", u.EscapedPath(), err)
		}
		switch segments[0] {
		case "clusters":
			r.service, r.action, r.params["name"] = "eks", "DescribeCluster", name
			return nil
		case "managedresources":
			r.service, r.action, r.params["resourceIdentifier"] = "arc-zonal-shift", "GetManagedResource", name
			return nil
		}
	}
	return fmt.Errorf("unknown path %q", u.EscapedPath())
}

func (r *request) parseForm() error {
	values, err := url.ParseQuery(string(r.body))
	if err != nil {
		return fmt.Errorf("reading the form: %w", err)
	}
	r.service, r.action = queryServices[values.Get("Version")], values.Get("Action")
	r.protocol = awsQuery
	if r.service == "ec2" {
		r.protocol = ec2Query
	}
	if r.service == "" || r.action == "" {
		return fmt.Errorf("unknown action %q of version %q", r.action, values.Get("Version"))
	}
	for key := range values {
		if key != "Action" && key != "Version" {
			r.params[key] = values.Get(key)
		}
	}
	r.form = r.params
	return nil
}

// flatten turns nested JSON into dotted keys; lists count from 1 as in queries.
func flatten(into map[string]string, prefix string, value any) {
	join := func(key string) string {
		if prefix == "" {
			return key
		}
		return prefix + "." + key
	}
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			flatten(into, join(key), item)
		}
	case []any:
		for i, item := range v {
			flatten(into, join(fmt.Sprint(i+1)), item)
		}
	case string:
		into[prefix] = v
	default:
		into[prefix] = fmt.Sprint(v)
	}
}
