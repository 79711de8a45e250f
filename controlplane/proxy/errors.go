package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/addresses"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// errLoopback says that a cluster's address leads to the hub's own machine.
var errLoopback = errors.New("is an address of the control plane's own machine: serve with --allow-loopback-clusters to allow that")

// reasonBadGateway is the reason of a Status for an answer of a member that is
// not passed on.
const reasonBadGateway metav1.StatusReason = "BadGateway"

// mostMessage bounds how much of a member's answer an error repeats, in bytes.
const mostMessage = 400

// status is an error that names the cluster.
func status(cluster string, code int, reason metav1.StatusReason, format string, args ...any) error {
	message := excerpt.Bytes(fmt.Sprintf(format, args...), mostMessage)
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    int32(code), //nolint:gosec // three digits
		Reason:  reason,
		Message: fmt.Sprintf("cluster %s: %s", cluster, message),
		Details: &metav1.StatusDetails{Group: clusterv1alpha1.GroupName, Kind: clusterv1alpha1.ResourcePluralCluster, Name: cluster},
	}}
}

func badRequest(cluster string, err error) error {
	return status(cluster, http.StatusBadRequest, metav1.StatusReasonBadRequest, "%v", err)
}

func badGateway(cluster, format string, args ...any) error {
	return status(cluster, http.StatusBadGateway, reasonBadGateway, format, args...)
}

func unavailable(cluster, format string, args ...any) error {
	return status(cluster, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, format, args...)
}

func gatewayTimeout(cluster, format string, args ...any) error {
	return status(cluster, http.StatusGatewayTimeout, metav1.StatusReasonTimeout, format, args...)
}

// explain turns an error of a request to a member into a Status.
func explain(cluster string, err error) error {
	var (
		known       *apierrors.StatusError
		timeout     net.Error
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		op          *net.OpError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, addresses.ErrReserved), errors.Is(err, errLoopback):
		return badGateway(cluster, "its address is refused: %v", root(err))
	case errors.As(err, &certificate), errors.As(err, &authority):
		return badGateway(cluster, "its certificate is not one of the cluster that was registered: %v", err)
	case errors.Is(err, context.DeadlineExceeded):
		return gatewayTimeout(cluster, "it does not answer in time")
	case errors.As(err, &timeout) && timeout.Timeout():
		return gatewayTimeout(cluster, "it does not answer in time: %v", err)
	case errors.As(err, &op):
		return unavailable(cluster, "it cannot be reached: %v", err)
	}
	return badGateway(cluster, "it does not answer as a cluster does: %v", err)
}

// root is the error that a dial was refused with.
func root(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
