package azureblob

import (
	"net/http"
	"testing"
)

// TestSigned is the text of the example in Azure's documentation.
func TestSigned(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://myaccount.blob.core.windows.net/mycontainer?restype=container&comp=metadata&timeout=20", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Ms-Date", "Fri, 26 Jun 2015 23:39:12 GMT")
	req.Header.Set("X-Ms-Version", "2015-02-21")
	const want = "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n/myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20"
	if got := signed(req, "myaccount"); got != want {
		t.Errorf("signed %q\nwant   %q", got, want)
	}
}

// FuzzPage: of whatever a server sends, an object has a key.
func FuzzPage(f *testing.F) {
	f.Add([]byte(`<EnumerationResults><Blobs><Blob><Name Encoded="true">a%20b</Name><Properties><Etag>0x1</Etag><Content-Length>3</Content-Length></Properties></Blob></Blobs><NextMarker>x</NextMarker></EnumerationResults>`))
	f.Add([]byte(`<EnumerationResults><Blobs><Blob><Name/></Blob></Blobs></EnumerationResults>`))
	f.Add([]byte(`<Error><Code>x</Code></Error>`))
	f.Fuzz(func(t *testing.T, content []byte) {
		found, err := parsePage(content)
		if err != nil {
			return
		}
		for _, o := range found.objects {
			if o.Key == "" || o.Size < 0 || o.Version() == "" {
				t.Errorf("%+v is no object", o)
			}
		}
	})
}
