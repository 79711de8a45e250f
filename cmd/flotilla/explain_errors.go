package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/clientcmd"
)

// describe says what an error of the control plane means for who asked.
func (f *explainFlags) describe(err error) error {
	var request *url.Error
	var network net.Error
	var nothing *meta.NoResourceMatchError
	switch {
	case err == nil:
		return nil
	case clientcmd.IsEmptyConfig(err):
		return errors.New("no control plane is known: --kubeconfig names the file that leads to it")
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the control plane does not accept these credentials (%w): --kubeconfig names a file with others", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: ask for the right to get it", err)
	case errors.As(err, &nothing) && nothing.PartialResource.Version == "":
		return unknownKind(nothing.PartialResource.Resource)
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the control plane does not serve it (%w): is this the control plane of a fleet, and is the CustomResourceDefinition there?", err)
	case errors.As(err, &request):
		return fmt.Errorf("no control plane answers at %s: %w; --kubeconfig names the file that leads to it", hostOf(request.URL), request.Err)
	case errors.As(err, &network):
		return fmt.Errorf("no control plane answers: %w", err)
	default:
		return err
	}
}

// hostOf returns scheme and host of an address: the path says nothing to users.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Scheme + "://" + u.Host
}

func unknownKind(word string) error {
	return fmt.Errorf("the control plane knows no kind %q: flotilla kubectl api-resources lists them", word)
}
