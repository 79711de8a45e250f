package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"syscall"

	"github.com/flotilla-io/flotilla/internal/tenure"
)

var (
	// ErrAnswer says that what answers is not what was expected there.
	ErrAnswer = errors.New("the answer makes no sense: is this the right server, and the right port?")
	// ErrCertificate begins the error about a server's certificate that is not trusted.
	ErrCertificate = errors.New("x509: certificate")
	// ErrEnded says that a connection ended before the answer did.
	ErrEnded = errors.New("the server ended the connection")
)

// aboutCertificate says what is wrong with a certificate, and nothing of what is in it.
func aboutCertificate(err error) string {
	var (
		names     x509.HostnameError
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &names):
		return "is for other names"
	case errors.As(err, &authority):
		return "signed by unknown authority"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "has expired or is not yet valid"
	default:
		return "is not valid"
	}
}

// refusedTLS is the Op of an error that holds the alert with which a server refused TLS. The type of the alert itself is exported for
// QUIC only.
const refusedTLS = "remote error"

// Fault returns what went wrong with a connection in words of our own. Clients
// of HTTP and SSH quote what was answered, and addresses and ports of this side.
func Fault(err error) error {
	var (
		refused     *NotAllowedError
		name        *net.DNSError
		number      syscall.Errno
		certificate *tls.CertificateVerificationError
		alert       tls.AlertError
		record      tls.RecordHeaderError
		timeout     net.Error
		remote      *net.OpError
	)
	var proxy *ProxyError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &proxy): // it may be what is refused
		return proxy
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, ErrProxyRefuses), errors.Is(err, ErrProxyUnauthorized):
		return err
	case errors.Is(err, tenure.ErrOver):
		return tenure.ErrOver
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	case errors.As(err, &name):
		return name
	case errors.As(err, &number):
		return number
	case errors.As(err, &certificate):
		return fmt.Errorf("%w %s", ErrCertificate, aboutCertificate(certificate.Err))
	case errors.As(err, &alert):
		return alert
	case errors.As(err, &remote) && remote.Op == refusedTLS && reflect.ValueOf(remote.Err).Kind() == reflect.Uint8:
		return tls.AlertError(reflect.ValueOf(remote.Err).Uint()) //nolint:gosec // it is that small
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return http.ErrSchemeMismatch
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return os.ErrDeadlineExceeded
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return fmt.Errorf("%w: %w", ErrEnded, io.ErrUnexpectedEOF)
	default:
		return ErrAnswer
	}
}
