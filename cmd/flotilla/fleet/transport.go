package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// proxyError is an error of the control plane itself for a request to a member: there is no such
// cluster, the user may not reach it, or it is away.
//
// It is not an API status on purpose: discovery would take a status of not found or forbidden for
// a member that serves nothing.
type proxyError struct{ status metav1.Status }

func (e *proxyError) Error() string { return e.status.Message }

// describe returns the error with what to do about it.
func (e *proxyError) describe() error {
	switch e.status.Code {
	case http.StatusNotFound:
		return fmt.Errorf("there is no cluster %s: flotilla get clusters lists them", e.status.Details.Name)
	case http.StatusForbidden:
		return fmt.Errorf("%w: ask for the right to do it", e)
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusBadGateway:
		return fmt.Errorf("%w: flotilla describe cluster %s says how it is", e, e.status.Details.Name)
	default:
		return e
	}
}

// Denied reports whether the user lacks a right: to reach a member, or to do something there.
func Denied(err error) bool {
	var proxy *proxyError
	if errors.As(err, &proxy) {
		return proxy.status.Code == http.StatusForbidden
	}
	return apierrors.IsForbidden(err)
}

// heedProxy returns a transport that turns error responses of the control plane's proxy into
// errors.
func heedProxy(next http.RoundTripper) http.RoundTripper { return &attentive{next: next} }

type attentive struct{ next http.RoundTripper }

// WrappedRoundTripper gives access to the TLS settings of the wrapped transport.
func (a *attentive) WrappedRoundTripper() http.RoundTripper { return a.next }

// RoundTrip sends a request.
func (a *attentive) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.next.RoundTrip(req)
	if err != nil || resp.StatusCode < http.StatusBadRequest || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return resp, err
	}
	const enough = 64 << 10 // statuses are short
	head, err := io.ReadAll(io.LimitReader(resp.Body, enough))
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	status := metav1.Status{}
	if json.Unmarshal(head, &status) == nil && ofProxy(status) {
		_ = resp.Body.Close()
		return nil, &proxyError{status: status}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
	return resp, nil
}

// ofProxy reports whether a status is about a Cluster. Members do not serve that kind.
func ofProxy(status metav1.Status) bool {
	return status.Kind == "Status" && status.Details != nil && status.Details.Group == clusterv1alpha1.GroupName &&
		status.Details.Kind == "clusters" && status.Details.Name != ""
}
