package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Object is one of a bucket.
type Object struct {
	Key string
	// ETag is the server's name of the version; empty if it has none.
	ETag string
	Size int64
	// Modified is when it was written, in the server's words.
	Modified string
}

// Version names the version of the object: by its ETag, or else by what the list says of it.
func (o Object) Version() string {
	return cmp.Or(o.ETag, strconv.FormatInt(o.Size, 10)+"@"+o.Modified)
}

// Revision names what a bucket holds, by the keys and versions of objects in the order of their keys, as Flux does.
func Revision(objects []Object) string {
	hash := sha256.New()
	for _, o := range slices.SortedFunc(slices.Values(objects), byKey) {
		_, _ = io.WriteString(hash, o.Key+" "+o.Version()+"\n") // a hash takes everything
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

func byKey(a, b Object) int { return strings.Compare(a.Key, b.Key) }

// page is one page of a list.
type page struct {
	objects []Object
	next    string // the token of the next page; empty for the last
}

// parsePage reads a page. Errors: ErrMalformed.
func parsePage(content []byte) (page, error) {
	var read struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		EncodingType          string
		IsTruncated           bool
		NextContinuationToken string
		Contents              []struct {
			Key, ETag, LastModified string
			Size                    int64
		}
	}
	if xml.NewDecoder(bytes.NewReader(content)).Decode(&read) != nil {
		return page{}, fmt.Errorf("%w: the list of objects is no XML that is understood: is it a server of S3?", ErrMalformed)
	}
	out := page{}
	for _, item := range read.Contents {
		if read.EncodingType == "url" {
			key, err := url.QueryUnescape(item.Key)
			if err != nil {
				return page{}, fmt.Errorf("%w: a key in the list is not encoded as it says", ErrMalformed)
			}
			item.Key = key
		}
		if item.Key == "" || item.Size < 0 {
			return page{}, fmt.Errorf("%w: the list has an object without a key, or without a size", ErrMalformed)
		}
		out.objects = append(out.objects, Object{Key: item.Key, ETag: strings.Trim(item.ETag, `"`), Size: item.Size, Modified: item.LastModified})
	}
	if read.IsTruncated {
		out.next = read.NextContinuationToken
		if out.next == "" {
			return page{}, fmt.Errorf("%w: the list ends in the middle", ErrMalformed)
		}
	}
	return out, nil
}

// List returns the objects whose keys begin with a prefix, by their keys: one request for every thousand. Errors: ErrNotFound,
// ErrUnauthorized, ErrTooLarge, ErrMalformed, BusyError and others.
func (r *Remote) List(ctx context.Context, prefix string) ([]Object, error) {
	all, err := r.list(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list the objects of bucket %s at %s: %w", r.place.Bucket, r.place.Endpoint, err)
	}
	return all, nil
}

func (r *Remote) list(ctx context.Context, prefix string) ([]Object, error) {
	var all []Object
	for token := ""; ; {
		query := url.Values{"list-type": {"2"}, "encoding-type": {"url"}}
		if prefix != "" {
			query.Set("prefix", prefix)
		}
		if token != "" {
			query.Set("continuation-token", token)
		}
		content, err := r.read(ctx, call{query: query}, r.opts.Limits.Page)
		if errors.Is(err, ErrNotFound) {
			return nil, fmt.Errorf("%w: there is no such bucket: check spec.bucketName and spec.endpoint", ErrNotFound)
		}
		if err != nil {
			return nil, err
		}
		found, err := parsePage(content)
		if err != nil {
			return nil, err
		}
		all = append(all, found.objects...)
		switch {
		case len(all) > r.opts.Limits.Objects:
			return nil, fmt.Errorf("more than %d objects: %w; name those that are meant by spec.prefix", r.opts.Limits.Objects, ErrTooLarge)
		case found.next == "":
			return checked(all, prefix)
		case found.next == token || len(found.objects) == 0:
			return nil, fmt.Errorf("%w: the list has no end", ErrMalformed)
		}
		token = found.next
	}
}

// checked returns the objects by their keys, if each is one that was asked for.
func checked(all []Object, prefix string) ([]Object, error) {
	slices.SortFunc(all, byKey)
	for i, o := range all {
		if !strings.HasPrefix(o.Key, prefix) || i > 0 && all[i-1].Key == o.Key {
			return nil, fmt.Errorf("%w: the list has objects that were not asked for, or one twice", ErrMalformed)
		}
	}
	return all, nil
}
