// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// fakeTimeout bounds every request to the fake.
const fakeTimeout = 10 * time.Second

// fakeClient reads the control API of the fake AWS endpoint.
type fakeClient struct {
	base string // without a trailing slash
	http *http.Client
}

func newFakeClient(base string) *fakeClient {
	return &fakeClient{base: strings.TrimRight(base, "/"), http: &http.Client{Timeout: fakeTimeout}}
}

// calls are those after the sequence number since.
func (f *fakeClient) calls(ctx context.Context, since int64) ([]Call, error) {
	var calls []Call
	err := f.get(ctx, "calls?"+url.Values{"since": {strconv.FormatInt(since, 10)}}.Encode(), &calls)
	return calls, err
}

func (f *fakeClient) instances(ctx context.Context) ([]Instance, error) {
	var instances []Instance
	err := f.get(ctx, "instances", &instances)
	return instances, err
}

func (f *fakeClient) launchTemplates(ctx context.Context) ([]LaunchTemplate, error) {
	var templates []LaunchTemplate
	err := f.get(ctx, "launch-templates", &templates)
	return templates, err
}

func (f *fakeClient) prices(ctx context.Context) (map[string]float64, error) {
	var prices map[string]float64
	err := f.get(ctx, "prices", &prices)
	return prices, err
}

func (f *fakeClient) rates(ctx context.Context) (map[string]Rate, error) {
	var rates map[string]Rate
	err := f.get(ctx, "rates", &rates)
	return rates, err
}

func (f *fakeClient) queues(ctx context.Context) (map[string]QueueCounts, error) {
	var queues map[string]QueueCounts
	err := f.get(ctx, "queues", &queues)
	return queues, err
}

func (f *fakeClient) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.base+"/_fake/"+path, nil)
	if err != nil {
		return fmt.Errorf("asking the fake for %s: %w", path, err)
	}
	response, err := f.http.Do(request)
	if err != nil {
		return fmt.Errorf("asking the fake for %s: %w", path, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("asking the fake for %s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking the fake for %s: %s: %.200s", path, response.Status, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("reading the fake's %s: %w", path, err)
	}
	return nil
}
