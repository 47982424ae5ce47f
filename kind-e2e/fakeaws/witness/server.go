// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// errAbsent says that there is no moto to ask.
var errAbsent = errors.New("no moto for Python here")

// motoServer is a running moto.
type motoServer struct {
	URL, Version string
	stop         func()
}

// startMoto runs moto's server on loopback until stop is called.
func startMoto(ctx context.Context) (*motoServer, error) {
	version, err := exec.CommandContext(ctx, "python3", "-c", "import moto, moto.server; print(moto.__version__)").Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAbsent, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().(*net.TCPAddr)
	if err := listener.Close(); err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	server := exec.CommandContext(running, "python3", "-m", "moto.server", "-H", "127.0.0.1", "-p", fmt.Sprint(address.Port))
	if err := server.Start(); err != nil {
		cancel()
		return nil, err
	}
	m := &motoServer{URL: "http://" + address.String(), Version: strings.TrimSpace(string(version)), stop: func() {
		cancel()
		_ = server.Wait() // killed: its status says nothing
	}}
	if err := m.ready(ctx); err != nil {
		m.stop()
		return nil, err
	}
	return m, nil
}

func (m *motoServer) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL+"/moto-api/data.json", nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			return response.Body.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for moto: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
