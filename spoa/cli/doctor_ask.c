/* One GET with libcurl's easy interface. */
#include "spoa/cli/doctor_ask.h"

#include <curl/curl.h>
#include <errno.h>

#include "common/net/addr.h"

enum { HEADERS_MAX_BYTES = 64 * 1024, CONNECT_TIMEOUT_MS = 2000 };

/* All addresses are ours on this machine. */
static struct str reachable(struct str host)
{
    static const struct addr none = {{0}};
    struct addr a;
    if (host.len == 0 || str_eq(host, STR("0.0.0.0")))
        return STR("127.0.0.1");
    return addr_parse(host, &a) && addr_cmp(&a, &none) == 0 ? STR("::1") : host;
}

static void put_at(struct listen_addr at, char out[static DOCTOR_AT_MAX])
{
    const struct str host = reachable(at.host);
    const bool is_v6 = str_find_byte(host, ':') != SIZE_MAX;
    snprintf(out, DOCTOR_AT_MAX, "%s%.*s%s:%u", is_v6 ? "[" : "", STR_ARG(host), is_v6 ? "]" : "", at.port);
}

/* Returning less than it was given ends the transfer with CURLE_WRITE_ERROR. */
static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
    struct buf *body = arg;
    const size_t len = size * n, room = body->cap - body->len;
    buf_put(body, (struct str){data, len < room ? len : room});
    body->full |= len > room;
    return body->full ? 0 : len;
}

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
    size_t *total = arg;
    (void) data;
    *total += size * n;
    return *total > HEADERS_MAX_BYTES ? 0 : size * n;
}

static bool configure(CURL *curl, const struct doctor_question *q, const char *url, struct curl_slist *headers)
{
    return curl_easy_setopt(curl, CURLOPT_URL, url) == CURLE_OK && curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http") == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_PROXY, "") == CURLE_OK && curl_easy_setopt(curl, CURLOPT_NOPROXY, "*") == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK && curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HTTP09_ALLOWED, 0L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long) CONNECT_TIMEOUT_MS) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long) q->timeout_ms) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HAPROXYPROTOCOL, q->as_balancer ? 1L : 0L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_USERAGENT, "edge-spoa-doctor") == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
           (headers == NULL || curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers) == CURLE_OK);
}

static void fail(struct doctor_answer *out, const char *why)
{
    out->reach = DOCTOR_FAILED;
    doctor_text(str_of(why), out->trouble, sizeof out->trouble);
}

static void not_connected(CURL *curl, CURLcode rc, struct doctor_answer *out)
{
    long why = 0;
    curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &why);
    if (why == ECONNREFUSED)
        out->reach = DOCTOR_REFUSED;
    else if (why == ECONNRESET) /* while the header of a balancer was written */
        out->reach = DOCTOR_CLOSED;
    else
        fail(out, why != 0 ? strerror((int) why) : curl_easy_strerror(rc));
}

/* What a transfer that ended with rc means. Codes that only an answer can cause are about its form. */
static void classify(CURL *curl, CURLcode rc, const struct buf *body, struct doctor_answer *out)
{
    curl_off_t connected_us = 0;
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_CONNECT_TIME_T, &connected_us);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (rc == CURLE_OK || (rc == CURLE_WRITE_ERROR && body->full)) {
        out->reach = DOCTOR_ANSWERED;
        out->status = (unsigned) status;
    } else if (rc == CURLE_COULDNT_CONNECT) {
        not_connected(curl, rc, out);
    } else if (rc == CURLE_OPERATION_TIMEDOUT && connected_us > 0) {
        out->reach = DOCTOR_SILENT;
    } else if (rc == CURLE_GOT_NOTHING || rc == CURLE_RECV_ERROR || rc == CURLE_SEND_ERROR) {
        out->reach = DOCTOR_CLOSED;
    } else if (connected_us > 0) {
        out->reach = DOCTOR_NO_HTTP;
    } else {
        fail(out, curl_easy_strerror(rc));
    }
}

void doctor_ask(const struct doctor_question *q, struct doctor_answer *out, struct buf *body)
{
    char url[DOCTOR_AT_MAX + 64];
    size_t header_bytes = 0;
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = q->header != NULL ? curl_slist_append(NULL, q->header) : NULL;
    memset(out, 0, sizeof *out);
    put_at(q->at, out->at);
    snprintf(url, sizeof url, "http://%s%s", out->at, q->path);
    if (curl == NULL || (q->header != NULL && headers == NULL) || !configure(curl, q, url, headers) ||
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, body) != CURLE_OK || curl_easy_setopt(curl, CURLOPT_HEADERDATA, &header_bytes) != CURLE_OK) {
        fail(out, "libcurl can't be set up");
        goto out;
    }
    classify(curl, curl_easy_perform(curl), body, out);
    doctor_text(str_trim(buf_str(body)), out->text, sizeof out->text);
out:
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
}
