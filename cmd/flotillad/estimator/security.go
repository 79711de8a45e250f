package estimator

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Files are the TLS files of a server. The zero value means no TLS.
type Files struct {
	// Cert and Key are the server's certificate and key: both, or none.
	Cert, Key string
	// ClientCA is the CA of the clients' certificates.
	ClientCA string
	// AnyClient accepts clients without a certificate.
	AnyClient bool
}

// Open reports whether the server has no TLS.
func (f Files) Open() bool { return f.Cert == "" && f.Key == "" }

// Credentials returns credentials from the files, or an error if the files are invalid. The
// certificate is read again for each connection, because it is renewed from time to time.
func (f Files) Credentials() (credentials.TransportCredentials, error) {
	if f.Open() {
		if f.ClientCA != "" {
			return nil, errors.New("clients are known by their certificates only where the server has one, too: name --grpc-auth-cert-file and --grpc-auth-key-file")
		}
		return insecure.NewCredentials(), nil
	}
	if f.Cert == "" || f.Key == "" {
		return nil, errors.New("--grpc-auth-cert-file and --grpc-auth-key-file go together: name both")
	}
	if _, err := tls.LoadX509KeyPair(f.Cert, f.Key); err != nil {
		return nil, fmt.Errorf("read the server's certificate: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		return &pair, err
	}}
	switch {
	case f.AnyClient:
	case f.ClientCA == "":
		return nil, errors.New("--grpc-client-ca-file is missing: it signs those who may ask; --insecure-skip-grpc-client-verify answers everybody")
	default:
		bytes, err := os.ReadFile(f.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("read the CA of clients: %w", err)
		}
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM(bytes) {
			return nil, fmt.Errorf("read the CA of clients: %s holds no certificate", f.ClientCA)
		}
	}
	return credentials.NewTLS(config), nil
}
