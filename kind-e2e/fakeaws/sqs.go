// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"crypto/md5" // SQS itself defines message digests as MD5
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	queueHost         = "https://sqs.fakeaws.invalid/"
	defaultVisibility = 30 * time.Second
	pollStep          = 100 * time.Millisecond
	maxReceive        = 10
)

type queue struct {
	messages []*message
	deleted  int
}

type message struct {
	id, receipt, body string
	sentAt, visibleAt time.Time
}

// CreateQueue makes an empty queue, as a user does before naming it to a controller.
func (s *Server) CreateQueue(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[name] = &queue{}
}

// DeleteQueue removes a queue with all that is in it.
func (s *Server) DeleteQueue(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.queues, name)
}

// QueueCounts says where the messages of a queue are.
type QueueCounts struct {
	Visible  int `json:"visible"`
	InFlight int `json:"inFlight"` // received, and neither deleted nor visible again
	Deleted  int `json:"deleted"`
}

// Queues counts the messages of every queue.
func (s *Server) Queues() map[string]QueueCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts, now := map[string]QueueCounts{}, time.Now()
	for name, q := range s.queues {
		count := QueueCounts{Deleted: q.deleted}
		for _, m := range q.messages {
			if m.visibleAt.After(now) {
				count.InFlight++
			} else {
				count.Visible++
			}
		}
		counts[name] = count
	}
	return counts
}

// SendMessage puts a message into a queue; it reports false if there is no such queue.
func (s *Server) SendMessage(name, body string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		return false
	}
	s.enqueue(q, body)
	return true
}

func (s *Server) enqueue(q *queue, body string) *message {
	m := &message{id: s.uuid(), body: body, sentAt: time.Now(), visibleAt: time.Now()}
	copies := []*message{m}
	if s.settings.DuplicateMessages { // at least once
		again := *m
		copies = append(copies, &again)
	}
	if s.settings.ReorderMessages {
		q.messages = slices.Concat(copies, q.messages)
	} else {
		q.messages = append(q.messages, copies...)
	}
	return m
}

func getQueueURL(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.params["QueueName"]
	if s.queues[name] == nil {
		return nil, errNoQueue()
	}
	return map[string]string{"QueueUrl": queueHost + s.opts.AccountID + "/" + name}, nil
}

func errNoQueue() *apiError {
	return errorf("QueueDoesNotExist", "The specified queue does not exist.")
}

// queue finds the queue of a request's QueueUrl; the caller holds the lock.
func (s *Server) queue(r *request) (*queue, error) {
	url := r.params["QueueUrl"]
	q := s.queues[url[strings.LastIndex(url, "/")+1:]]
	if q == nil {
		return nil, errNoQueue()
	}
	return q, nil
}

func receiveMessage(s *Server, r *request) (any, error) {
	until := time.Now().Add(time.Duration(atoi(r.params["WaitTimeSeconds"])) * time.Second)
	for {
		messages, err := s.receive(r)
		if err != nil {
			return nil, err
		}
		if len(messages) > 0 || !time.Now().Before(until) {
			return map[string]any{"Messages": messages}, nil
		}
		if r.http.Context().Err() != nil || !sleep(s.ctx, pollStep) {
			return map[string]any{}, nil
		}
	}
}

func (s *Server) receive(r *request) ([]map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(r)
	if err != nil {
		return nil, err
	}
	visibility := defaultVisibility
	if seconds, ok := r.params["VisibilityTimeout"]; ok {
		visibility = time.Duration(atoi(seconds)) * time.Second
	}
	most := min(max(1, atoi(r.params["MaxNumberOfMessages"])), maxReceive)
	var taken []map[string]any
	for _, m := range q.messages {
		if len(taken) == most || m.visibleAt.After(time.Now()) {
			continue
		}
		m.receipt, m.visibleAt = s.uuid(), time.Now().Add(visibility)
		taken = append(taken, map[string]any{
			"MessageId": m.id, "ReceiptHandle": m.receipt, "Body": m.body, "MD5OfBody": digest(m.body),
			"Attributes": map[string]string{"SentTimestamp": strconv.FormatInt(m.sentAt.UnixMilli(), 10)},
		})
	}
	return taken, nil
}

func digest(body string) string {
	sum := md5.Sum([]byte(body)) // SQS itself defines message digests as MD5
	return hex.EncodeToString(sum[:])
}

func deleteMessage(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(r)
	if err != nil {
		return nil, err
	}
	receipt := r.params["ReceiptHandle"]
	before := len(q.messages)
	q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return m.receipt == receipt })
	q.deleted += before - len(q.messages)
	return nil, nil
}

func sendMessage(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(r)
	if err != nil {
		return nil, err
	}
	m := s.enqueue(q, r.params["MessageBody"])
	return map[string]string{"MessageId": m.id, "MD5OfMessageBody": digest(m.body)}, nil
}

func getQueueAttributes(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queue(r)
	if err != nil {
		return nil, err
	}
	visible := 0
	for _, m := range q.messages {
		if !m.visibleAt.After(time.Now()) {
			visible++
		}
	}
	return map[string]any{"Attributes": map[string]string{
		"ApproximateNumberOfMessages": strconv.Itoa(visible), "ApproximateNumberOfMessagesNotVisible": strconv.Itoa(len(q.messages) - visible),
	}}, nil
}
