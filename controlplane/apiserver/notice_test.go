package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
)

// heard keeps the warnings of one answer.
type heard []string

func (h *heard) AddWarning(_, text string) { *h = append(*h, text) }

// TestNotices: what is said to clients is not said where they keep the answer, headers
// and all, beyond the time that it holds.
func TestNotices(t *testing.T) {
	const full = "its disk is full"
	requests := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	for name, tc := range map[string]struct {
		method, path, who, notice string
		want                      heard
	}{
		"objects are listed":                    {http.MethodGet, "/api/v1/namespaces/shop/pods", "eve", full, heard{full}},
		"an object is read":                     {http.MethodGet, "/apis/apps/v1/namespaces/shop/deployments/web", "eve", full, heard{full}},
		"an object is written":                  {http.MethodPatch, "/apis/apps/v1/namespaces/shop/deployments/web", "eve", full, heard{full}},
		"there is nothing to tell":              {http.MethodGet, "/api/v1/namespaces/shop/pods", "eve", "", nil},
		"nobody is known to have asked":         {http.MethodGet, "/api/v1/namespaces/shop/pods", "", full, nil},
		"the server asks itself":                {http.MethodGet, "/api/v1/namespaces/shop/pods", user.APIServerUser, full, nil},
		"all kinds without a group are read":    {http.MethodGet, "/api", "eve", full, nil},
		"the kinds of all groups are read":      {http.MethodGet, "/apis", "eve", full, nil},
		"the kinds of one version are read":     {http.MethodGet, "/api/v1", "eve", full, nil},
		"the versions of a group are read":      {http.MethodGet, "/apis/apps", "eve", full, nil},
		"the kinds of a group are read":         {http.MethodGet, "/apis/apps/v1", "eve", full, nil},
		"all schemas are read":                  {http.MethodGet, "/openapi/v2", "eve", full, nil},
		"what schemas there are is read":        {http.MethodGet, "/openapi/v3", "eve", full, nil},
		"the schemas of a group are read":       {http.MethodGet, "/openapi/v3/apis/apps/v1", "eve", full, nil},
		"a page that is nobody's cache is read": {http.MethodGet, "/version", "eve", full, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got heard
			req := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, http.NoBody)
			info, err := requests.NewRequestInfo(req)
			if err != nil {
				t.Fatal(err)
			}
			ctx := request.WithRequestInfo(warning.WithWarningRecorder(req.Context(), &got), info)
			if tc.who != "" {
				ctx = request.WithUser(ctx, &user.DefaultInfo{Name: tc.who})
			}
			answered := false
			withNotice(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { answered = true }), func() string { return tc.notice }).
				ServeHTTP(httptest.NewRecorder(), req.WithContext(ctx))
			if diff := cmp.Diff(tc.want, got); diff != "" || !answered {
				t.Errorf("answered: %t, told (-want +got):\n%s", answered, diff)
			}
		})
	}
}
