package conversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxReview is how many bytes of a review are read: a list is converted in one.
const maxReview = 256 << 20

// Func turns the JSON of an object into another version of its kind.
type Func func(object []byte, apiVersion string) ([]byte, error)

// Handler answers reviews by a conversion.
type Handler struct {
	convert Func
	limit   int64
}

// NewHandler returns a handler that converts by convert.
func NewHandler(convert Func) *Handler {
	return &Handler{convert: convert, limit: maxReview}
}

// ServeHTTP reads a ConversionReview and answers it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "conversion reviews are posted", http.StatusMethodNotAllowed)
		return
	}
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, h.limit)).Decode(&review); err != nil {
		status := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "conversion review: "+err.Error(), status)
		return
	}
	if review.Request == nil || review.GroupVersionKind() != apiextensionsv1.SchemeGroupVersion.WithKind("ConversionReview") {
		http.Error(w, "not a conversion review of apiextensions.k8s.io/v1 with a request", http.StatusBadRequest)
		return
	}
	answer := apiextensionsv1.ConversionReview{TypeMeta: review.TypeMeta, Response: h.answer(review.Request)}
	content, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, "encode answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(content) // whoever asked has gone; nobody is left to tell
}

func (h *Handler) answer(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	out := &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for i, object := range request.Objects {
		converted, err := h.one(object.Raw, request.DesiredAPIVersion)
		if err != nil {
			return &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{
				Status: metav1.StatusFailure, Message: fmt.Sprintf("object %d: %v", i, err),
			}}
		}
		out.ConvertedObjects = append(out.ConvertedObjects, runtime.RawExtension{Raw: converted})
	}
	return out
}

// one converts an object and keeps its metadata to the letter, as the server
// demands.
func (h *Handler) one(object []byte, apiVersion string) ([]byte, error) {
	converted, err := h.convert(object, apiVersion)
	if err != nil {
		return nil, err
	}
	var before struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(object, &before); err != nil {
		return nil, fmt.Errorf("decode metadata: %w", err)
	}
	var after map[string]json.RawMessage
	if err := json.Unmarshal(converted, &after); err != nil {
		return nil, fmt.Errorf("decode converted object: %w", err)
	}
	after["metadata"] = before.Metadata
	return json.Marshal(after)
}
