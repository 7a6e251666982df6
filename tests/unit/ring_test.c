/* The ring against a plain list of all that was printed. */
typedef struct RingTest {
    Ring   r;
    char   all[6 << 20];
    bool   kind[6 << 20];
    size_t n;
} RingTest;

/* Put n bytes of a kind in, as a program that prints them would. */
static size_t ring_test__print(RingTest *t, bool is_err, size_t n, uint64_t keep)
{
    size_t done = 0;
    char  *p;

    while (done < n) {
        size_t space = ring_space(&t->r, keep, &p);
        if (space > n - done)
            space = n - done;
        if (!space)
            break;
        for (size_t i = 0; i < space; i++) {
            t->kind[t->n] = is_err;
            p[i] = t->all[t->n++] = (char)(rand() & 0xff);
        }
        ring_grew(&t->r, is_err, space);
        done += space;
    }
    return done;
}

/* Everything from `at` on comes, each byte with its kind. */
static void ring_test__read(RingTest *t, RingPlace *at, size_t most)
{
    bool is_err;
    Str  piece;

    while ((piece = ring_piece(&t->r, at, most, &is_err)).n) {
        assert_true(at->offset >= t->r.base);
        assert_memory_equal(piece.p, t->all + at->offset, piece.n);
        for (size_t i = 0; i < piece.n; i++)
            assert_true(t->kind[at->offset + i] == is_err);
        ring_pass(at, piece.n);
    }
    assert_int_equal(at->offset, t->n);
}

static RingTest *ring_test__make(void)
{
    RingTest *t = mem_new(sizeof *t);

    t->r = ring_make();
    return t;
}

static void ring_test__free(RingTest *t)
{
    ring_free(&t->r);
    mem_free(t);
}

static void ring_test_follows(void **state)
{
    RingTest *t = ring_test__make();
    RingPlace slow = {0}, fast = {0};

    (void)state;
    srand(1);
    while (t->n < (5 << 20)) {
        size_t want = rand() % 9 ? (size_t)rand() % 90 : (size_t)rand() % 90000;
        /* What the slow one has not got yet is never lost. */
        size_t done = ring_test__print(t, rand() % 2, want, slow.offset);
        ring_test__read(t, &fast, 1 + (size_t)rand() % 70000);
        RingPlace again = ring_place(&t->r, t->r.base + (uint64_t)rand() % (t->r.end - t->r.base + 1));
        ring_test__read(t, &again, 65528);
        if (done < want || rand() % 50 == 0)
            ring_test__read(t, &slow, 5000);
        assert_true(slow.offset >= t->r.base);
    }
    assert_true(t->r.total[0] + t->r.total[1] == t->n && t->r.end == t->n);
    assert_true(t->r.end - t->r.base > RING_BYTES / 2 && t->r.end - t->r.base <= RING_BYTES);
    ring_test__free(t);
}

static void ring_test_overruns(void **state)
{
    RingTest *t = ring_test__make();
    RingPlace at = {0};
    bool      is_err;

    (void)state;
    ring_test__print(t, false, 100, UINT64_MAX);
    ring_test__read(t, &at, 10);
    assert_int_equal(ring_test__print(t, true, 3 << 20, UINT64_MAX), 3 << 20);
    assert_int_equal(ring_piece(&t->r, &at, 7, &is_err).n, 7);
    assert_true(is_err && at.offset == t->r.base && t->r.end - t->r.base == RING_BYTES);
    ring_test__read(t, &at, 65528);
    /* Many small pieces: their number is what is bounded, and kept ones stay. */
    for (size_t i = 0; i < 3 * RING_RUNS; i++)
        assert_int_equal(ring_test__print(t, i % 2, 1, UINT64_MAX), 1);
    assert_int_equal(t->r.last - t->r.first, RING_RUNS);
    ring_test__read(t, &at, 3);
    uint64_t keep = t->r.base;
    assert_int_equal(ring_test__print(t, t->kind[t->n - 1] == false, 1, keep), 0);
    ring_test__free(t);
}

static void ring_test_rewinds(void **state)
{
    RingTest *t = ring_test__make();
    RingPlace at = ring_place(&t->r, 0);
    char     *front, *p;

    (void)state;
    assert_int_equal(ring_space(&t->r, 0, &front), RING_BYTES);
    for (int i = 0; i < 40; i++) {
        ring_test__print(t, i % 3 == 0, 60000, at.offset);
        ring_test__read(t, &at, 65528);
        ring_rewind(&t->r);
        assert_int_equal(ring_space(&t->r, at.offset, &p), RING_BYTES);
        assert_ptr_equal(p, front);
    }
    assert_int_equal(ring_place(&t->r, 5).offset, t->n);
    ring_test__free(t);
}

static const struct CMUnitTest ring_tests[] = {
    cmocka_unit_test(ring_test_follows),
    cmocka_unit_test(ring_test_overruns),
    cmocka_unit_test(ring_test_rewinds),
};
