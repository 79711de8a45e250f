package estimators

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// resolve returns where the estimator of a cluster may be, the likeliest first: what the Service
// of its name on the hub leads to, or where there is none, that name in the cluster that the
// hub itself runs on.
func resolve(ctx context.Context, services client.Reader, opts Options, cluster string) ([]string, error) {
	name := opts.Prefix + "-" + cluster
	var service corev1.Service
	err := services.Get(ctx, client.ObjectKey{Namespace: opts.Namespace, Name: name}, &service)
	switch {
	case apierrors.IsNotFound(err):
		port := strconv.Itoa(opts.Port)
		host := name + "." + opts.Namespace + ".svc"
		return []string{net.JoinHostPort(host+".cluster.local", port), net.JoinHostPort(host, port)}, nil
	case err != nil:
		return nil, fmt.Errorf("look for the Service %s/%s: %w", opts.Namespace, name, err)
	case service.Spec.Type != corev1.ServiceTypeExternalName:
		return nil, fmt.Errorf("the Service %s/%s is of the type %s: it must be %s", opts.Namespace, name, service.Spec.Type, corev1.ServiceTypeExternalName)
	}
	for _, port := range service.Spec.Ports {
		if int(port.Port) == opts.Port && port.TargetPort.Type == intstr.Int {
			return []string{net.JoinHostPort(service.Spec.ExternalName, strconv.Itoa(int(port.TargetPort.IntVal)))}, nil
		}
	}
	return nil, fmt.Errorf("the Service %s/%s has no port %d with a number as its targetPort", opts.Namespace, name, opts.Port)
}

// Files are what connections to estimators are secured with. The zero value secures nothing.
type Files struct {
	// CA signs the certificates of estimators; empty means the authorities of the system, if
	// anything else is set.
	CA string
	// Cert and Key are who asks. Both, or none.
	Cert, Key string
	// SkipVerify believes every estimator that it is one.
	SkipVerify bool
}

// Check errs where the files cannot be what they should be.
func (f Files) Check() error {
	if (f.Cert == "") != (f.Key == "") {
		return errors.New("a certificate and its key go together: name both files")
	}
	_, err := f.credentials()
	return err
}

// credentials read the files anew: they are renewed now and then.
func (f Files) credentials() (credentials.TransportCredentials, error) {
	if f == (Files{}) {
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: f.SkipVerify} //nolint:gosec // whoever sets the flag wants it
	if f.CA != "" {
		bytes, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("read the CA of estimators: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(bytes) {
			return nil, fmt.Errorf("read the CA of estimators: %s holds no certificate", f.CA)
		}
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("read the certificate for estimators: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(config), nil
}
