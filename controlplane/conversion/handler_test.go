package conversion

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// upper is a conversion that shows what it was given.
func upper(object []byte, apiVersion string) ([]byte, error) {
	var in map[string]any
	if err := json.Unmarshal(object, &in); err != nil {
		return nil, err
	}
	if in["kind"] == "Poison" {
		return nil, errors.New("cannot be converted")
	}
	return json.Marshal(map[string]any{"apiVersion": apiVersion, "kind": in["kind"], "metadata": map[string]any{"name": "lost"}})
}

func TestServeHTTP(t *testing.T) {
	const head = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview",`
	cases := map[string]struct {
		method, body string
		wantStatus   int
		wantBody     string
	}{
		"converts each object and keeps its metadata": {
			body:       head + `"request":{"uid":"1","desiredAPIVersion":"g/v2","objects":[{"apiVersion":"g/v1","kind":"A","metadata":{"name":"a","custom":1}},{"apiVersion":"g/v1","kind":"B","metadata":{"name":"b"}}]}}`,
			wantStatus: http.StatusOK,
			wantBody:   `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"1","convertedObjects":[{"apiVersion":"g/v2","kind":"A","metadata":{"name":"a","custom":1}},{"apiVersion":"g/v2","kind":"B","metadata":{"name":"b"}}],"result":{"metadata":{},"status":"Success"}}}`,
		},
		"refuses all when one cannot be converted, and says which": {
			body:       head + `"request":{"uid":"2","desiredAPIVersion":"g/v2","objects":[{"kind":"A","metadata":{}},{"kind":"Poison","metadata":{}}]}}`,
			wantStatus: http.StatusOK,
			wantBody:   `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"2","convertedObjects":null,"result":{"metadata":{},"status":"Failure","message":"object 1: cannot be converted"}}}`,
		},
		"refuses what is not JSON":           {body: `{`, wantStatus: http.StatusBadRequest, wantBody: "conversion review: unexpected EOF"},
		"refuses a review without a request": {body: head + `"response":{}}`, wantStatus: http.StatusBadRequest, wantBody: "not a conversion review of apiextensions.k8s.io/v1 with a request"},
		"refuses another kind":               {body: `{"apiVersion":"v1","kind":"Pod","request":{}}`, wantStatus: http.StatusBadRequest, wantBody: "not a conversion review of apiextensions.k8s.io/v1 with a request"},
		"refuses another method":             {method: http.MethodGet, wantStatus: http.StatusMethodNotAllowed, wantBody: "conversion reviews are posted"},
		"refuses more than the limit":        {body: head + `"request":{"uid":"` + strings.Repeat("x", 2000) + `"}}`, wantStatus: http.StatusRequestEntityTooLarge, wantBody: "conversion review: http: request body too large"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.method == "" {
				tc.method = http.MethodPost
			}
			handler := NewHandler(upper)
			handler.limit = 1000
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), tc.method, "/convert", strings.NewReader(tc.body)))
			if answer.Code != tc.wantStatus {
				t.Errorf("status = %d, want %d", answer.Code, tc.wantStatus)
			}
			if diff := cmp.Diff(normal(tc.wantBody), normal(answer.Body.String())); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

// normal gives JSON one form and leaves other text as it is.
func normal(text string) any {
	var out any
	if json.Unmarshal([]byte(text), &out) == nil {
		return out
	}
	return strings.TrimSpace(text)
}

func FuzzServeHTTP(f *testing.F) {
	f.Add(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"g/v2","objects":[{"kind":"A","metadata":{}}]}}`)
	f.Add(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"objects":[null]}}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, body string) {
		answer := httptest.NewRecorder()
		NewHandler(upper).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/convert", strings.NewReader(body)))
		if answer.Code == http.StatusOK && !json.Valid(answer.Body.Bytes()) {
			t.Errorf("answer to %q is not JSON: %s", body, answer.Body)
		}
		if answer.Code == http.StatusInternalServerError {
			t.Errorf("%q breaks the handler: %s", body, answer.Body)
		}
	})
}
