// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeCA makes a CA and returns it with the files that hold it.
func writeCA(t *testing.T) (ca *x509.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if ca, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "ca.crt"), filepath.Join(t.TempDir(), "ca.key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return ca, certFile, keyFile
}

func TestKubeletCertificates(t *testing.T) {
	t.Parallel()
	ca, certFile, keyFile := writeCA(t)
	issuer, err := newIssuer(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	certPEM, _, err := issuer.issue("system:node:ip-10-0-0-4.ec2.internal", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(certPEM)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("an API server would refuse it: %v", err)
	}
	if cert.Subject.CommonName != "system:node:ip-10-0-0-4.ec2.internal" || cert.Subject.Organization[0] != "system:nodes" {
		t.Errorf("issued to %s", cert.Subject)
	}
}

func TestRunServesUntilItIsStopped(t *testing.T) {
	t.Parallel()
	_, certFile, keyFile := writeCA(t)
	portFile := filepath.Join(t.TempDir(), "port")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, flags{listen: "127.0.0.1:0", portFile: portFile, clusterName: "demo", clusterCAFile: certFile, clientCACertFile: certFile, clientCAKey: keyFile})
	}()
	var address []byte
	for address == nil {
		select {
		case err := <-done:
			t.Fatalf("ended early: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		if data, err := os.ReadFile(portFile); err == nil {
			address = data
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+strings.TrimSpace(string(address))+"/_fake/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("healthz: %d, %v", response.StatusCode, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("stopping: %v", err)
	}
}

func TestRunRefusesBadFiles(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "none")
	for name, f := range map[string]flags{
		"cluster CA": {listen: "127.0.0.1:0", clusterCAFile: missing},
		"client CA":  {listen: "127.0.0.1:0", clientCACertFile: missing, clientCAKey: missing},
		"address":    {listen: "nowhere"},
	} {
		if err := run(t.Context(), f); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
