// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func testAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a, err := newAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func poolOf(t *testing.T, certPEM []byte) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(certPEM) {
		t.Fatal("no certificate in PEM")
	}
	return pool
}

func TestClientCertificateNamesUserAndGroups(t *testing.T) {
	t.Parallel()
	ca := testAuthority(t, "client-ca")
	pair, err := ca.client("system:node:ip-10-0-0-1.ec2.internal", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(pair.certPEM)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := cert.Subject.CommonName, "system:node:ip-10-0-0-1.ec2.internal"; got != want {
		t.Errorf("user is %q, want %q", got, want)
	}
	if diff := cmp.Diff([]string{"system:nodes"}, cert.Subject.Organization); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if cert.IsCA {
		t.Error("a client can sign certificates")
	}
	if _, err := cert.Verify(x509.VerifyOptions{
		Roots: ca.pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}); err == nil {
		t.Error("a client's certificate is good for a server")
	}
}

// TestHandshake connects a client to a server over TLS, both verified.
func TestHandshake(t *testing.T) {
	t.Parallel()
	serving, clients, other := testAuthority(t, "serving-ca"), testAuthority(t, "client-ca"), testAuthority(t, "other-ca")
	cases := map[string]struct {
		host     string
		signedBy *authority // the client's certificate
		trusts   *authority // for the server's
		wantOK   bool
	}{
		"by IP address":                      {host: "127.0.0.1", signedBy: clients, trusts: serving, wantOK: true},
		"by name":                            {host: "localhost", signedBy: clients, trusts: serving, wantOK: true},
		"by a name that is not the server's": {host: "example.com", signedBy: clients, trusts: serving},
		"a client that trusts another CA":    {host: "localhost", signedBy: clients, trusts: other},
		"a client signed by the serving CA":  {host: "localhost", signedBy: serving, trusts: serving},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pair, err := serving.server("kube-apiserver", "127.0.0.1", "localhost")
			if err != nil {
				t.Fatal(err)
			}
			server := &tls.Config{
				Certificates: []tls.Certificate{certificate(t, pair)},
				ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: clients.pool(),
			}
			pair, err = tc.signedBy.client("admin", "system:masters")
			if err != nil {
				t.Fatal(err)
			}
			client := &tls.Config{
				Certificates: []tls.Certificate{certificate(t, pair)}, RootCAs: tc.trusts.pool(), ServerName: tc.host,
			}
			if err := handshake(server, client); (err == nil) != tc.wantOK {
				t.Errorf("got error %v, want success %v", err, tc.wantOK)
			}
		})
	}
}

func certificate(t *testing.T, pair keyPair) tls.Certificate {
	t.Helper()
	cert, err := tls.X509KeyPair(pair.certPEM, pair.keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// handshake returns what the client learns: that the server refused it, it
// learns only when it reads.
func handshake(server, client *tls.Config) error {
	clientConn, serverConn := net.Pipe()
	go func() {
		defer serverConn.Close()
		conn := tls.Server(serverConn, server)
		if conn.Handshake() == nil {
			_, _ = conn.Write([]byte("!"))
		}
	}()
	defer clientConn.Close()
	_, err := io.ReadFull(tls.Client(clientConn, client), make([]byte, 1))
	return err
}

func TestAuthorityFiles(t *testing.T) {
	t.Parallel()
	ca := testAuthority(t, "client-ca")
	files, err := ca.write(t.TempDir(), "client-ca")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(files.KeyPath); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file is %v, error %v; want mode 0600", info.Mode(), err)
	}
	var pair keyPair
	for path, to := range map[string]*[]byte{files.CertPath: &pair.certPEM, files.KeyPath: &pair.keyPEM} {
		if *to, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	read, err := parseAuthority(pair)
	if err != nil {
		t.Fatal(err)
	}
	issued, err := read.client("system:node:a", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	cert := certificate(t, issued)
	if _, err := cert.Leaf.Verify(x509.VerifyOptions{
		Roots: ca.pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		t.Errorf("what the files sign is not the authority's: %v", err)
	}
	if _, err := parseAuthority(keyPair{certPEM: pair.certPEM, keyPEM: []byte("no key")}); err == nil {
		t.Error("a key that is not PEM was accepted")
	}
}
