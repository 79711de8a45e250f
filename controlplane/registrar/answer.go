package registrar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// most is how many bytes of an object are read.
const most = 1 << 20

// answer answers the maker of rights. Nothing comes to the server, and nothing is stored.
func (r *Registrar) answer(w http.ResponseWriter, req *http.Request, info *request.RequestInfo) {
	gv := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
	status := http.StatusOK
	if info.Verb == "create" {
		status = http.StatusCreated
	}
	out, err := r.decide(w, req, info)
	if err != nil {
		responsewriters.ErrorNegotiated(err, scheme.Codecs, gv, w, req)
		return
	}
	responsewriters.WriteObjectNegotiated(scheme.Codecs, negotiation.DefaultEndpointRestrictions, gv, w, req, status, out, false)
}

// decide returns what is answered. What is asked for is never there, and may be made:
// but for the namespace that the control plane has of its own.
func (r *Registrar) decide(w http.ResponseWriter, req *http.Request, info *request.RequestInfo) (client.Object, error) {
	resource := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	if info.Verb == "get" || info.Verb == "delete" {
		switch _, err := clusterOf(info.Resource, info.Namespace, info.Name); {
		case err != nil:
			return nil, apierrors.NewForbidden(resource, info.Name, err)
		case info.Verb == "get" && info.Name == workv1alpha2.NamespaceKarmadaCluster:
			return namespaceOf(info.Name), nil
		}
		return nil, apierrors.NewNotFound(resource, info.Name)
	}
	obj, err := read(w, req, info)
	if err != nil {
		return nil, err
	}
	cluster, err := clusterOf(info.Resource, obj.GetNamespace(), obj.GetName())
	if err == nil && cluster != "" {
		err = r.isNew(req.Context(), cluster)
	}
	if err == nil {
		err = grant(req.Context(), cluster, obj)
	}
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		return nil, err
	case err != nil:
		return nil, apierrors.NewForbidden(resource, obj.GetName(), err)
	}
	return obj, nil
}

// read returns the object that a request brings, which must be of the kind and the place
// that the request is about.
func read(w http.ResponseWriter, req *http.Request, info *request.RequestInfo) (client.Object, error) {
	obj := kindOf(info.Resource)
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, most))
	var large *http.MaxBytesError
	switch {
	case obj == nil:
		return nil, apierrors.NewBadRequest(info.Resource + " are not asked for here")
	case errors.As(err, &large):
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("at most %d bytes", most))
	case err != nil:
		return nil, apierrors.NewBadRequest(err.Error())
	}
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, obj)
	switch {
	case err != nil:
		return nil, apierrors.NewBadRequest("the object cannot be read: " + err.Error())
	case decoded != obj:
		return nil, apierrors.NewBadRequest("the object is none of " + info.Resource)
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(info.Namespace)
	}
	if obj.GetNamespace() != info.Namespace || info.Name != "" && obj.GetName() != info.Name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object is %s, the request is about %s/%s", client.ObjectKeyFromObject(obj), info.Namespace, info.Name))
	}
	return obj, nil
}

// isNew refuses the cluster that is in the fleet already.
func (r *Registrar) isNew(ctx context.Context, cluster string) error {
	found, err := r.cluster(ctx, cluster)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("read cluster %s: %w", cluster, err))
	case !found.DeletionTimestamp.IsZero():
		return fmt.Errorf("the cluster %s is leaving the fleet: wait until it has left", cluster)
	}
	return fmt.Errorf("the cluster %s is in the fleet already: choose another name; or unregister it first", cluster)
}
